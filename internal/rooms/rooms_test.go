// Package rooms holds the rules of who may import whom. It belongs to the root module, since go
// test takes a result from its cache unless a file below the tested module has changed.
package rooms

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// rules is the table. A line names a package and all that it may import; a package without a
// line may not exist. Imports of a package's tests are checked against its line and that of
// "test" or, if there is one, its own with " test" after the name.
//
//	~/x     a package of this repository; @/x one of go.opentelemetry.io
//	x/...   x and all packages below it
//	-x      not x, although something before it allows x
//
// A name in capitals stands for what its line says. STD is the standard library and OTHERS is
// every package that is neither in it nor in this repository.
const rules = `
# No I/O and no waiting.
PURE: STD -context -database/... -net/... -os/... -syscall/... -log/syslog -plugin

# What services import. None of it may import what is not on this line.
ROOT:   ~/sparx64 ~/randflake ~/lease ~/lease/driver ~/lease/driver/pages
        ~/lease/boltstore ~/lease/k8sstore ~/idgen ~/traceid
        ~/lookup ~/propagation/xtraceid ~/clients/js ~/clickhouse ~/clickhouse/migrate ~/postgres ~/setup
STORES: ~/lease/pgstore ~/lease/etcdstore ~/lease/s3store
METRIC: @/otel @/otel/attribute @/otel/metric @/otel/metric/...

# Blocks and keys: no time, no IDs.
sparx64: PURE -time golang.org/x/sys/cpu

# IDs, leases as values, the clock.
randflake: PURE ~/sparx64

# Only here are goroutines started, and only stores do I/O.
lease: PURE context ~/randflake ~/lease/internal/owner ~/internal/version
                 ~/internal/vmclock ~/internal/entropy METRIC
lease/internal/owner: STD

# The side of the stores' authors: the rule of granting, and the stores. Services import lease.
STORE: STD ~/randflake ~/lease ~/lease/driver ~/lease/driver/pages
lease/driver:    STD ~/randflake ~/lease ~/lease/internal/owner
lease/boltstore: STORE ~/internal/entropy ~/internal/vmclock go.etcd.io/bbolt/...
lease/pgstore:   STORE github.com/jackc/pgx/v5/...
lease/etcdstore: STORE go.uber.org/zap google.golang.org/grpc/...
                           go.etcd.io/etcd/api/v3/... go.etcd.io/etcd/client/v3/...
lease/k8sstore:  STORE
lease/s3store:   STORE github.com/aws/aws-sdk-go-v2/aws/...
                           github.com/aws/aws-sdk-go-v2/config
lease/driver/pages: STD ~/randflake ~/lease ~/lease/driver
lease/driver/pages/pagestest: STD ~/lease/driver/pages
lease/leasetest: STORE github.com/anishathalye/porcupine pgregory.net/rapid

# Makes IDs. It knows a source of them, not leases.
idgen: PURE context ~/randflake ~/traceid ~/internal/version ~/internal/vmclock
       ~/internal/entropy METRIC
       @/otel/trace @/otel/sdk/trace

# Reads IDs: no SDK, no generator.
traceid: PURE ~/randflake @/otel/trace

# Adds the time in an ID to lookups over HTTP.
lookup: STD ~/traceid ~/internal/version METRIC @/otel/trace

# Does not know how IDs are born.
propagation/xtraceid: STD METRIC @/otel/trace @/otel/propagation @/contrib/propagators/b3
propagation/xtraceid/xtraceidgrpc: STD ~/propagation/xtraceid @/otel/trace google.golang.org/grpc/...

# The JavaScript client as a text.
clients/js: STD

# SQL and text.
clickhouse:              STD ~/clickhouse/internal/ddl
clickhouse/migrate:      STD ~/clickhouse ~/clickhouse/internal/ddl
clickhouse/internal/ddl: STD
postgres:                STD

# Puts the parts together.
setup: STORE ~/idgen ~/traceid ~/lease/boltstore METRIC @/otel/trace

# What says whether this machine was cloned.
internal/vmclock: STD

# Random bytes that differ between copies of a machine.
internal/entropy: STD ~/internal/vmclock golang.org/x/sys/cpu

# Nothing else imports these.
sparx64/_asm:         STD github.com/mmcloughlin/avo/...
integration/servers/...: STD OTHERS ~/integration/servers/...
integration/faults:    STD OTHERS ROOT
integration/demo:      STD OTHERS ROOT STORES ~/integration/servers/...
integration/...:       STD OTHERS ROOT STORES ~/propagation/xtraceid/xtraceidgrpc ~/lease/leasetest
                       ~/integration/servers/... ~/integration/faults ~/integration/lease/crowd ~/integration/lease/calls
internal/rooms:        STD
internal/version:      STD
cmd/...:               STD OTHERS ROOT STORES ~/cmd/... ~/internal/entropy ~/internal/vmclock
bench/...:             STD OTHERS ROOT ~/integration/servers/... ~/bench/...
examples/otelhttp/...: STD OTHERS ROOT STORES

# Tests of the root module bring in no module that a user of it has not.
test: STD ROOT @/otel/... @/contrib/propagators/b3 go.etcd.io/bbolt golang.org/x/sys/cpu golang.org/x/sys/unix
# Tests of stores that start engines are in integration/lease.
lease/leasetest test: STD ROOT ~/lease/leasetest
                                ~/lease/driver/pages/...
lease/driver/pages test: STD ROOT ~/lease/driver/pages/...

# Not even in tests.
NEVER: math/rand github.com/stretchr/testify/...
`

// planted are imports that the table must refuse, or the test of it is worth nothing.
var planted = map[string]string{
	"sparx64":              "time context net/http os syscall ~/randflake ~/idgen @/otel github.com/klauspost/cpuid/v2",
	"randflake":            "context net os/exec database/sql syscall @/otel/trace ~/lease ~/idgen",
	"lease":                "net os database/sql ~/sparx64 ~/idgen @/otel/sdk/metric @/otel/trace ~/lease/boltstore",
	"lease/boltstore":      "@/otel ~/idgen github.com/jackc/pgx/v5 ~/lease/pgstore",
	"lease/pgstore":        "@/otel ~/idgen go.etcd.io/bbolt github.com/lib/pq ~/lease/leasetest ~/integration/servers",
	"lease/etcdstore":      "@/otel ~/idgen go.etcd.io/etcd/server/v3/embed ~/lease/leasetest",
	"lease/k8sstore":       "@/otel ~/idgen k8s.io/client-go/rest ~/lease/pgstore ~/integration/servers/kubernetes",
	"lease/s3store":        "@/otel ~/idgen github.com/aws/aws-sdk-go-v2/service/s3 ~/lease/leasetest",
	"lease/leasetest":      "~/idgen ~/lease/pgstore github.com/jackc/pgx/v5 ~/integration/servers",
	"idgen":                "net/http os ~/sparx64 ~/lease ~/propagation/xtraceid @/otel/sdk/metric @/otel/baggage",
	"traceid":              "context net/http os ~/idgen ~/sparx64 @/otel/sdk/trace @/otel",
	"propagation/xtraceid": "~/idgen ~/randflake @/otel/sdk/trace @/contrib/propagators/autoprop",
	"clients/js":           "~/traceid @/otel",
	"clickhouse":           "~/idgen @/otel github.com/ClickHouse/clickhouse-go/v2",
	"postgres":             "~/idgen @/otel github.com/jackc/pgx/v5",
	"setup":                "~/sparx64 ~/propagation/xtraceid ~/lease/pgstore go.etcd.io/bbolt @/otel/sdk/trace",
	"integration/servers":  "~/cmd/traceflake ~/integration/clickhouse ~/idgen math/rand",
	"integration/postgres": "~/cmd/traceflake ~/bench ~/examples/otelhttp github.com/stretchr/testify/assert",
	"integration/demo":     "~/integration/tracing ~/bench",
	"cmd/traceflake":       "~/bench ~/integration/tracing ~/integration/demo ~/integration/servers",
	"bench":                "~/cmd/traceflake/internal/backfill ~/integration/demo",
	"examples/otelhttp":    "~/integration/servers ~/integration/demo ~/lease/leasetest",
	"newcomer":             "fmt",
	"lease/newcomer":       "fmt",

	"sparx64 test":       "~/integration/servers math/rand github.com/stretchr/testify/require github.com/jackc/pgx/v5",
	"idgen test":         "~/integration/tracing ~/lease/pgstore @/contrib/instrumentation/net/http/otelhttp",
	"lease/pgstore test": "~/integration/servers ~/lease/leasetest math/rand",
	"bench test":         "~/integration/tracing github.com/stretchr/testify/require",
}

func TestImports(t *testing.T) {
	table, err := parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("../../go.work"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the other modules are not here: this is a copy of the root module alone")
	}
	all, err := imports(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for _, i := range all {
		if err := table.check(i, used); err != nil {
			t.Error(err)
		}
	}
	for name := range table {
		if name != strings.ToUpper(name) && !used[name] {
			t.Errorf("there is no package %s: delete its line", name)
		}
	}
}

func TestPlantedImports(t *testing.T) {
	table, err := parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	tree := make(fstest.MapFS)
	count := 0
	for room, refused := range planted {
		dir, suffix := strings.CutSuffix(room, " test")
		end := ".go"
		if suffix {
			end = "_test.go"
		}
		for i, imported := range strings.Fields(refused) {
			name := fmt.Sprintf("%s/planted%d%s", dir, i, end)
			tree[name] = &fstest.MapFile{Data: fmt.Appendf(nil, "package p\n\nimport _ %q\n", long(imported))}
			count++
		}
	}
	all, err := imports(tree)
	if err != nil || len(all) != count {
		t.Fatalf("%d of %d planted imports found: %v", len(all), count, err)
	}
	for _, i := range all {
		if table.check(i, nil) == nil {
			t.Errorf("%s may import %s", i.file, i.path)
		}
	}
}

func TestBadTable(t *testing.T) {
	for text, want := range map[string]string{
		"a: STD\na: STD":   "a has two lines",
		"a STD":            "line 1",
		"a: PURE":          "PURE is not defined",
		"X: Y\nY: X\na: X": "defined by itself",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
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

// table has the patterns of each line, with the names in capitals resolved.
type table map[string][]string

func parse(text string) (table, error) {
	lines := make(table)
	last := ""
	for n, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if name, rest, ok := strings.Cut(line, ":"); ok {
			if _, twice := lines[name]; twice {
				return nil, fmt.Errorf("%s has two lines", name)
			}
			last, line = name, rest
		} else if last == "" || !strings.HasPrefix(line, " ") {
			return nil, fmt.Errorf("line %d is not NAME: IMPORTS: %q", n+1, line)
		}
		lines[last] = append(lines[last], strings.Fields(line)...)
	}
	resolved := make(table)
	for name := range lines {
		var err error
		if resolved[name], err = lines.resolve(name, nil); err != nil {
			return nil, err
		}
	}
	return resolved, nil
}

func (t table) resolve(name string, via []string) (patterns []string, err error) {
	if slices.Contains(via, name) {
		return nil, fmt.Errorf("%s is defined by itself", name)
	}
	for _, p := range t[name] {
		switch {
		case p == "STD" || p == "OTHERS" || p != strings.ToUpper(p):
			patterns = append(patterns, p)
		case t[p] == nil:
			return nil, fmt.Errorf("%s is not defined", p)
		default:
			more, err := t.resolve(p, append(via, name))
			if err != nil {
				return nil, err
			}
			patterns = append(patterns, more...)
		}
	}
	return patterns, nil
}

// line finds the line of a package: its own, or that of the nearest folder with "/...".
func (t table) line(room, suffix string) string {
	for name, dir := room, room; ; dir = path.Dir(dir) {
		if t[name+suffix] != nil {
			return name + suffix
		}
		if dir == "." {
			return ""
		}
		name = dir + "/..."
	}
}

// allows reports whether the lines allow the import. The last pattern that matches decides.
func (t table) allows(pkg string, lines ...string) bool {
	for _, name := range lines {
		allowed := false
		for _, p := range t[name] {
			if p, not := strings.CutPrefix(p, "-"); matches(p, pkg) {
				allowed = !not
			}
		}
		if allowed {
			return true
		}
	}
	return false
}

// check returns an error unless the table allows the import. It notes the lines that it used.
func (t table) check(i imported, used map[string]bool) error {
	room := path.Dir(i.file)
	lines := []string{t.line(room, "")}
	if lines[0] == "" {
		return fmt.Errorf("%s: package %s has no line in the table: give it one", i.file, room)
	}
	if strings.HasSuffix(i.file, "_test.go") {
		test := t.line(room, " test")
		if test == "" {
			test = "test"
		}
		lines = append(lines, test)
	}
	if used != nil {
		for _, name := range lines {
			used[name] = true
		}
	}
	// A package may be imported by its own external test.
	self := i.path == ours+"/"+room && len(lines) > 1
	if t.allows(i.path, "NEVER") || !self && !t.allows(i.path, lines...) {
		return fmt.Errorf("%s imports %s, which the table does not allow: %s may import %s",
			i.file, i.path, strings.Join(lines, " and "), strings.Join(t[lines[0]], " "))
	}
	return nil
}

type imported struct{ file, path string }

// imports reads the imports of every Go file, for whatever system and build tags it is.
func imports(tree fs.FS) (all []imported, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
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
