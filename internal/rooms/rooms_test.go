// Package rooms holds the rules of who may import whom, and checks the names of tests in pages. It
// belongs to the root module, since go test takes a result from its cache unless a file below the
// tested module has changed.
package rooms

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
)

// The standard library and other modules are STD and OTHERS. What else has a name:
const (
	// No I/O and no waiting.
	pure = " STD -context -database/... -net/... -os/... -syscall/... -log/syslog -plugin "

	// What services import. None of it may import what is not listed here.
	root = " ~/sparx64 ~/randflake ~/lease ~/lease/driver ~/lease/driver/pages" +
		" ~/lease/boltstore ~/lease/k8sstore ~/idgen ~/traceid" +
		" ~/lookup ~/propagation/xtraceid ~/clickhouse ~/postgres ~/setup "
	stores = " ~/lease/pgstore ~/lease/etcdstore ~/lease/s3store "
	metric = " @/otel @/otel/attribute @/otel/metric @/otel/metric/... "

	// The side of the stores' authors: the rule of granting, and the stores. Services import lease.
	store = " STD ~/randflake ~/lease ~/lease/driver ~/lease/driver/pages "

	// Not even in tests.
	never = "math/rand github.com/stretchr/testify/..."

	// Tests of the root module import no module that its users do not need.
	tests = "STD" + root + "~/internal/calls @/otel/... @/contrib/propagators/b3 go.etcd.io/bbolt golang.org/x/sys/cpu golang.org/x/sys/unix"
)

// rules is the table: all that each package may import. A package without a line may not exist.
// Imports of a package's tests are checked against its line and against tests or, if there is one,
// its own line with " test" after the name.
//
//	~/x     a package of this repository; @/x one of go.opentelemetry.io
//	x/...   x and all packages below it
//	-x      not x, although something before it allows x
var rules = map[string]string{
	// Blocks and keys: no time, no IDs.
	"sparx64": pure + "-time golang.org/x/sys/cpu",

	// IDs, leases as values, the clock.
	"randflake": pure + "~/sparx64",

	// Only here are goroutines started, and only stores do I/O.
	"lease": pure + metric + "context ~/randflake ~/lease/internal/owner" +
		" ~/internal/version ~/internal/vmclock ~/internal/entropy ~/internal/reports",
	"lease/internal/owner": "STD",

	"lease/driver":    "STD ~/randflake ~/lease ~/lease/internal/owner",
	"lease/boltstore": store + "~/internal/entropy ~/internal/vmclock go.etcd.io/bbolt/...",
	"lease/pgstore":   store + "github.com/jackc/pgx/v5/...",
	"lease/etcdstore": store + "go.uber.org/zap google.golang.org/grpc/..." +
		" go.etcd.io/etcd/api/v3/... go.etcd.io/etcd/client/v3/... go.etcd.io/etcd/client/pkg/v3/transport",
	"lease/k8sstore":               store,
	"lease/s3store":                store + "github.com/aws/aws-sdk-go-v2/aws/... github.com/aws/aws-sdk-go-v2/config",
	"lease/driver/pages":           "STD ~/randflake ~/lease ~/lease/driver",
	"lease/driver/pages/pagestest": "STD ~/lease/driver/pages",
	"lease/leasetest":              store + "github.com/anishathalye/porcupine",

	// Makes IDs. It knows a source of them, not leases.
	"idgen": pure + metric + "context ~/randflake ~/traceid ~/internal/version ~/internal/vmclock" +
		" ~/internal/entropy ~/internal/reports @/otel/trace @/otel/sdk/trace",

	// Reads IDs: no SDK, no generator.
	"traceid": pure + "~/randflake @/otel/trace",

	// Adds the time in an ID to lookups over HTTP.
	"lookup": "STD ~/traceid ~/internal/version @/otel/trace" + metric,

	// Does not know how IDs are born.
	"propagation/xtraceid":              "STD @/otel/trace @/otel/propagation @/contrib/propagators/b3" + metric,
	"propagation/xtraceid/xtraceidgrpc": "STD ~/propagation/xtraceid @/otel/trace google.golang.org/grpc/...",

	// SQL and text.
	"clickhouse": "STD",
	"postgres":   "STD",

	// Puts the parts together.
	"setup": store + metric + "~/idgen ~/traceid ~/lease/boltstore ~/internal/reports @/otel/trace",

	// The same, for builds with otelc; in_main.go imports the package itself.
	"otelc": "STD ~/otelc ~/setup ~/propagation/xtraceid ~/lease/k8sstore" +
		" @/otel @/otel/sdk/resource @/otel/sdk/trace @/contrib/propagators/autoprop",

	// What says whether this machine was cloned.
	"internal/vmclock": "STD",

	// Random bytes that differ between copies of a machine.
	"internal/entropy": "STD ~/internal/vmclock golang.org/x/sys/cpu",

	// Errors on their way to a handler that may block.
	"internal/reports": "STD @/otel",

	// Nothing else imports these.
	"sparx64/_asm":            "STD github.com/mmcloughlin/avo/...",
	"integration/servers/...": "STD OTHERS ~/randflake ~/lease ~/lease/driver ~/integration/servers/...",
	"integration/faults":      "STD OTHERS ~/lease/driver/pages/pagestest" + root,
	"integration/...": "STD OTHERS ~/propagation/xtraceid/xtraceidgrpc ~/lease/leasetest ~/lease/driver/pages/pagestest ~/integration/servers/..." +
		" ~/integration/faults ~/integration/lease/processes ~/internal/calls" + root + stores,
	"internal/rooms":        "STD",
	"internal/calls":        "STD ~/lease ~/lease/driver",
	"internal/version":      "STD",
	"cmd/...":               "STD OTHERS ~/cmd/... ~/internal/entropy ~/internal/vmclock" + root + stores,
	"bench/...":             "STD OTHERS ~/integration/servers/... ~/bench/..." + root,
	"examples/otelhttp/...": "STD OTHERS" + root + stores,

	// Tests of stores that start servers are in integration/lease.
	"lease/leasetest test":    "~/lease/leasetest ~/lease/driver/pages/... STD" + root,
	"lease/driver/pages test": "~/lease/driver/pages/... STD" + root,
	"cmd/... test":            "~/lease/driver/pages/pagestest " + tests,
	"lease/etcdstore test":    "~/lease/driver/pages/pagestest " + tests,
	"lease/k8sstore test":     "~/lease/driver/pages/pagestest " + tests,
	"lease/s3store test":      "~/lease/driver/pages/pagestest " + tests,
}

// planted are imports that the table must refuse, or the test of it is worth nothing.
var planted = map[string]string{
	"sparx64":              "time context net/http os syscall ~/randflake ~/idgen @/otel github.com/klauspost/cpuid/v2",
	"randflake":            "context net os/exec database/sql syscall @/otel/trace ~/lease ~/idgen",
	"lease":                "net os database/sql ~/sparx64 ~/idgen @/otel/sdk/metric @/otel/trace ~/lease/boltstore",
	"lease/pgstore":        "@/otel ~/idgen go.etcd.io/bbolt github.com/lib/pq ~/lease/leasetest ~/integration/servers",
	"idgen":                "net/http os ~/sparx64 ~/lease ~/propagation/xtraceid @/otel/sdk/metric @/otel/baggage",
	"traceid":              "context net/http os ~/idgen ~/sparx64 @/otel/sdk/trace @/otel",
	"propagation/xtraceid": "~/idgen ~/randflake @/otel/sdk/trace @/contrib/propagators/autoprop",
	"clickhouse":           "~/idgen @/otel github.com/ClickHouse/clickhouse-go/v2",
	"setup":                "~/sparx64 ~/propagation/xtraceid ~/lease/pgstore go.etcd.io/bbolt @/otel/sdk/trace",
	"integration/servers":  "~/cmd/traceflake ~/integration/clickhouse ~/idgen ~/setup ~/lease/pgstore math/rand",
	"cmd/traceflake":       "~/bench ~/integration/tracing ~/integration/demo ~/integration/servers",
	"bench":                "~/cmd/traceflake/cli ~/integration/demo",
	"newcomer":             "fmt",

	"sparx64 test":       "~/integration/servers math/rand github.com/stretchr/testify/require github.com/jackc/pgx/v5",
	"lease/pgstore test": "~/integration/servers ~/integration/lease/processes go.etcd.io/etcd/client/v3 math/rand",
}

func TestImports(t *testing.T) {
	all, err := imports(wholeRepository(t))
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for _, i := range all {
		if err := check(i, used); err != nil {
			t.Error(err)
		}
	}
	for name := range rules {
		if !used[name] {
			t.Errorf("there is no package %s: delete its line", name)
		}
	}
}

func TestPlantedImports(t *testing.T) {
	for room, refused := range planted {
		file := room + "/planted.go"
		if dir, ok := strings.CutSuffix(room, " test"); ok {
			file = dir + "/planted_test.go"
		}
		for short := range strings.FieldsSeq(refused) {
			if check(imported{file, long(short)}, map[string]bool{}) == nil {
				t.Errorf("%s may import %s", room, short)
			}
		}
	}
}

const ours = "github.com/traceflake/traceflake"

// long is the import path that the table has in short.
func long(s string) string {
	if rest, ok := strings.CutPrefix(s, "~"); ok {
		return ours + rest
	}
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		return "go.opentelemetry.io" + rest
	}
	return s
}

// matches reports whether the pattern matches the package.
func matches(pattern, pkg string) bool {
	switch pattern {
	case "STD":
		first, _, _ := strings.Cut(pkg, "/")
		return !strings.Contains(first, ".")
	case "OTHERS":
		return !matches("STD", pkg) && !matches("~/...", pkg)
	}
	if below, ok := strings.CutSuffix(long(pattern), "/..."); ok {
		return pkg == below || strings.HasPrefix(pkg, below+"/")
	}
	return pkg == long(pattern)
}

// line returns the name of a package's line: its own, or that of the nearest folder with "/...".
func line(room, suffix string) string {
	for name, dir := room, room; ; dir = path.Dir(dir) {
		if _, ok := rules[name+suffix]; ok {
			return name + suffix
		}
		if dir == "." {
			return ""
		}
		name = dir + "/..."
	}
}

// allows reports whether a line allows the import. The last pattern that matches decides.
func allows(line, pkg string) (allowed bool) {
	for p := range strings.FieldsSeq(line) {
		if p, not := strings.CutPrefix(p, "-"); matches(p, pkg) {
			allowed = !not
		}
	}
	return allowed
}

// check returns an error unless the table allows the import. It notes the lines that it used.
func check(i imported, used map[string]bool) error {
	room := path.Dir(i.file)
	name := line(room, "")
	if name == "" {
		return fmt.Errorf("%s: package %s has no line in the table: give it one", i.file, room)
	}
	used[name] = true
	allowed := allows(rules[name], i.path)
	if strings.HasSuffix(i.file, "_test.go") {
		more := tests
		if test := line(room, " test"); test != "" {
			used[test] = true
			more = rules[test]
		}
		// A package may be imported by its own external test.
		allowed = allowed || allows(more, i.path) || i.path == ours+"/"+room
	}
	if !allowed || allows(never, i.path) {
		return fmt.Errorf("%s imports %s, which the table does not allow: %s may import %s", i.file, i.path, name, rules[name])
	}
	return nil
}

type imported struct{ file, path string }

// imports reads the imports of every Go file, for whatever system and build tags it is.
func imports(tree fs.FS) (all []imported, err error) {
	err = walk(tree, func(name string, source []byte) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, s := range file.Imports {
			p, err := strconv.Unquote(s.Path.Value)
			if err != nil {
				return err
			}
			all = append(all, imported{name, p})
		}
		return nil
	})
	return all, err
}
