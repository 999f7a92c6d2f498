package otelc_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/boltstore"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

const (
	sdk      = "go.opentelemetry.io/otel/sdk"
	autoprop = "go.opentelemetry.io/contrib/propagators/autoprop"
)

// build builds the service on copies of the SDK and of autoprop to which the rules were applied, and
// returns the program. edit may change the copies before.
func build(t *testing.T, edit func(sdk, autoprop string)) (program string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, from := range map[string]string{"sdk": moduleDir(t, sdk), "autoprop": moduleDir(t, autoprop), "service": "testdata/service"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	service := filepath.Join(dir, "service")
	edit(filepath.Join(dir, "sdk"), filepath.Join(dir, "autoprop"))
	apply(t, filepath.Join(root, "otelc"), map[string]string{
		"main":         service,
		sdk + "/trace": filepath.Join(dir, "sdk", "trace"),
		autoprop:       filepath.Join(dir, "autoprop"),
	})
	const ours = "github.com/traceflake/traceflake"
	requires := strings.Replace(read(t, filepath.Join(root, "otelc", "go.mod")), "module "+ours+"/otelc", "module service", 1)
	write(t, filepath.Join(service, "go.mod"), requires+"\nrequire "+ours+"/otelc v0.0.0\n"+
		"replace "+ours+" => "+root+"\nreplace "+ours+"/otelc => "+filepath.Join(root, "otelc")+"\n"+
		"replace "+sdk+" => ../sdk\nreplace "+autoprop+" => ../autoprop\n")
	write(t, filepath.Join(service, "go.sum"), read(t, filepath.Join(root, "otelc", "go.sum")))

	program = filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-mod=mod", "-trimpath", "-o", program, ".")
	cmd.Dir, cmd.Env = service, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return program
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func asPublished(string, string) {}

// run returns the words that the program prints, and its log.
func run(t *testing.T, program, what string, env ...string) (words []string, logged string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, what)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &stdout, &stderr
	err = cmd.Run()
	return strings.Fields(stdout.String()), stderr.String(), err
}

// held reports whether a lease of the store lasts longer than now.
func held(t *testing.T, file string) bool {
	t.Helper()
	store, err := boltstore.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(t.Context()) }()
	blocks, err := store.List(t.Context())
	if err != nil || len(blocks) == 0 {
		t.Fatalf("%d blocks: %v", len(blocks), err)
	}
	return slices.ContainsFunc(blocks, func(g lease.Grant) bool { return time.Until(g.End) > time.Minute })
}

// A service that contains no traceflake code gets ordered IDs under a lease, which it returns.
func TestService(t *testing.T) {
	program := build(t, asPublished)

	for _, test := range []struct {
		what  string
		ids   int
		leave bool // without Shutdown
	}{
		{what: "default", ids: 2000},
		{what: "providers", ids: 3000},
		{what: "killed", ids: 1000, leave: true},
	} {
		t.Run(test.what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "leases.db")
			ids, logged, err := run(t, program, test.what, setup.StoreVar+"=bolt:"+file)
			if err != nil || logged != "" || len(ids) != test.ids {
				t.Fatalf("%d IDs, %q, %v", len(ids), logged, err)
			}
			if !slices.IsSorted(ids) {
				t.Error("not in order")
			}
			if got := held(t, file); got != test.leave {
				t.Errorf("lease held: %t", got)
			}
			fleet, err := setup.Config{Store: "bolt:" + file}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = fleet.Shutdown(t.Context()) }()
			for _, text := range ids {
				id, err := trace.TraceIDFromHex(text)
				if err != nil || !fleet.Verifier().Verify(id) {
					t.Fatalf("%s was not generated with a lease: %v", text, err)
				}
			}
		})
	}

	t.Run("given", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "leases.db")
		ids, logged, err := run(t, program, "given", setup.StoreVar+"=bolt:"+file)
		if err != nil || logged != "" || len(ids) != 1000 || ids[0] != "01"+strings.Repeat("00", 15) {
			t.Errorf("%d IDs, %q, %v", len(ids), logged, err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("a lease was taken: %v", err)
		}
	})

	t.Run("propagator", func(t *testing.T) {
		words, logged, err := run(t, program, "propagator", "OTEL_PROPAGATORS=xtraceid")
		if err != nil || logged != "" || len(words) < 2 || !strings.Contains(words[0], "x-trace-id") || words[len(words)-1] != "[baggage]" {
			t.Errorf("%s, %q, %v", words, logged, err)
		}
	})

	t.Run("invalid settings", func(t *testing.T) {
		ids, logged, err := run(t, program, "killed", setup.StoreVar+"=nosuchstore://host")
		if err != nil || len(ids) != 1000 || !strings.Contains(logged, "nosuchstore") {
			t.Fatalf("%d IDs, %q, %v", len(ids), logged, err)
		}
		id, err := trace.TraceIDFromHex(ids[0])
		if age := time.Since(traceid.Time(id)); err != nil || age < -time.Minute || age > time.Minute {
			t.Errorf("%s: %s old, %v", ids[0], age, err)
		}
		ids, logged, err = run(t, program, "killed", setup.StoreVar+"=nosuchstore://host", setup.StrictVar+"=1")
		if err == nil || len(ids) != 0 || !strings.Contains(logged, "nosuchstore") {
			t.Errorf("a strict start: %d IDs, %q, %v", len(ids), logged, err)
		}
	})
}

// The program says which rules did not match, and goes on with the SDK's IDs.
func TestUnmatchedRules(t *testing.T) {
	program := build(t, func(sdk, autoprop string) {
		for _, name := range []string{"trace/id_generator.go", "trace/provider.go"} {
			file := filepath.Join(sdk, name)
			write(t, file, strings.ReplaceAll(read(t, file), "defaultIDGenerator", "newDefaultIDGenerator"))
		}
	})
	ids, logged, err := run(t, program, "default")
	if err != nil || len(ids) != 2000 || slices.IsSorted(ids) ||
		!strings.Contains(logged, "defaultIDGenerator") || strings.Contains(logged, "autoprop") {
		t.Errorf("%d IDs, %q, %v", len(ids), logged, err)
	}
}

// A propagator that the service registers before this package does stays.
func TestPropagatorOfAnInit(t *testing.T) {
	program := build(t, func(_, autoprop string) {
		write(t, filepath.Join(autoprop, "early.go"), "package autoprop\n\nimport \"go.opentelemetry.io/otel/propagation\"\n\n"+
			"func init() { RegisterTextMapPropagator(\"xtraceid\", propagation.Baggage{}) }\n")
	})
	words, logged, err := run(t, program, "propagator", "OTEL_PROPAGATORS=xtraceid")
	if err != nil || logged != "" || !slices.Equal(words, []string{"[baggage]", "[baggage]"}) {
		t.Errorf("%s, %q, %v", words, logged, err)
	}
}
