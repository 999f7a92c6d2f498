// Package otelc tests the rules of module otelc on copies of the packages that they change: the
// tool otelc is not published as a Go module.
package otelc_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.yaml.in/yaml/v3"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/traceid"
)

const (
	sdk      = "go.opentelemetry.io/otel/sdk"
	autoprop = "go.opentelemetry.io/contrib/propagators/autoprop"
)

// build builds the service on copies of the SDK and of autoprop to which the rules were applied,
// and returns the program. edit may change the copies before.
func build(t *testing.T, edit func(sdk, autoprop string)) (program string) {
	t.Helper()
	root, dir := child.Repository, t.TempDir()
	for name, from := range map[string]string{"sdk": moduleDir(t, sdk),
		"autoprop": moduleDir(t, autoprop), "service": "testdata/service"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	service := filepath.Join(dir, "service")
	edit(filepath.Join(dir, "sdk"), filepath.Join(dir, "autoprop"))
	apply(t, map[string]string{
		"main":         service,
		sdk + "/trace": filepath.Join(dir, "sdk", "trace"),
		autoprop:       filepath.Join(dir, "autoprop"),
	})
	const ours = "github.com/traceflake/traceflake"
	requires := strings.Replace(child.Read(t, "contrib/otelc/go.mod"),
		"module "+ours+"/contrib/otelc", "module service", 1)
	child.Write(t, filepath.Join(service, "go.mod"), requires+
		"\nrequire "+ours+"/contrib/otelc v0.0.0\n"+
		"replace "+ours+" => "+root+"\n"+
		"replace "+ours+"/contrib/otelc => "+filepath.Join(root, "contrib/otelc")+"\n"+
		"replace "+sdk+" => ../sdk\nreplace "+autoprop+" => ../autoprop\n")
	child.Write(t, filepath.Join(service, "go.sum"), child.Read(t, "contrib/otelc/go.sum"))

	program = filepath.Join(dir, "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-trimpath", "-o", program,
		".")
	cmd.Dir, cmd.Env = service, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	child.Output(t, 0, cmd)
	return program
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	return strings.TrimSpace(child.Output(t, 0, exec.CommandContext(t.Context(), "go", "list",
		"-m", "-f", "{{.Dir}}", module)))
}

// run returns the words that the program prints, and its log.
func run(program, what string, env ...string) (words []string, logged string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, what)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &stdout, &stderr
	err = cmd.Run()
	return strings.Fields(stdout.String()), stderr.String(), err
}

// recent reports whether all IDs are traceflake's, of this hour.
func recent(ids []string) bool {
	verifier := traceid.NewVerifier(nil, traceid.WithPlausible(time.Hour))
	return !slices.ContainsFunc(ids, func(text string) bool {
		id, err := trace.TraceIDFromHex(text)
		return err != nil || !verifier.Plausible(id)
	})
}

// A service without any traceflake code gets our IDs under a lease, also after the Shutdown of
// a provider.
func TestService(t *testing.T) {
	program := build(t, func(string, string) {})
	file := filepath.Join(t.TempDir(), "leases")
	store := "TRACEFLAKE_STORE=file:" + file

	ids, logged, err := run(program, "given", store)
	if err != nil || logged != "" || len(ids) != 1000 || ids[0] != "01"+strings.Repeat("00", 15) {
		t.Errorf("a generator of its own: %d IDs, %q, %v", len(ids), logged, err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a lease was taken: %v", err)
	}

	const invalid = "TRACEFLAKE_STORE=nosuchstore://host"
	for _, c := range []struct {
		what   string
		env    []string
		ids    int
		leased bool
	}{
		{"providers", []string{store}, 3000, true},
		{"killed", []string{store}, 1000, true},
		{"killed", []string{invalid}, 1000, false},
		{"killed", []string{invalid, "TRACEFLAKE_STRICT=1"}, 0, false},
	} {
		ids, logged, err := run(program, c.what, c.env...)
		if len(ids) != c.ids || !recent(ids) || (err == nil) != (c.ids > 0) ||
			strings.Contains(logged, "nosuchstore") == c.leased || c.leased && logged != "" {
			t.Errorf("%s with %s: %d IDs, %q, %v", c.what, c.env, len(ids), logged, err)
		}
		if !c.leased {
			continue
		}
		leased, err := fleet.Config{Store: "file:" + file}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range ids {
			if id, err := trace.TraceIDFromHex(text); err != nil || !leased.Verifier().Verify(id) {
				t.Fatalf("%s: %s was not generated with a lease: %v", c.what, text, err)
			}
		}
		if err := leased.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}

	words, logged, err := run(program, "propagator", "OTEL_PROPAGATORS=xtraceid")
	if err != nil || logged != "" || len(words) < 2 || !strings.Contains(words[0], "x-trace-id") ||
		words[len(words)-1] != "[baggage]" {
		t.Errorf("propagator: %s, %q, %v", words, logged, err)
	}
}

// The program reports which rules did not match, and continues with the SDK's IDs. A propagator
// that the service registers before this package stays.
func TestUnmatchedRules(t *testing.T) {
	program := build(t, func(sdk, autoprop string) {
		for _, name := range []string{"trace/id_generator.go", "trace/provider.go"} {
			file := filepath.Join(sdk, name)
			child.Write(t, file, strings.ReplaceAll(read(t, file), "defaultIDGenerator",
				"newDefaultIDGenerator"))
		}
		child.Write(t, filepath.Join(autoprop, "early.go"),
			"package autoprop\n\nimport \"go.opentelemetry.io/otel/propagation\"\n\n"+
				"func init() { RegisterTextMapPropagator(\"xtraceid\", propagation.Baggage{}) }\n")
	})
	ids, logged, err := run(program, "killed")
	if err != nil || len(ids) != 1000 || recent(ids) ||
		!strings.Contains(logged, "defaultIDGenerator") || strings.Contains(logged, "autoprop") {
		t.Errorf("%d IDs, %q, %v", len(ids), logged, err)
	}
	words, _, err := run(program, "propagator", "OTEL_PROPAGATORS=xtraceid")
	if err != nil || !slices.Equal(words, []string{"[baggage]", "[baggage]"}) {
		t.Errorf("%s, %v", words, err)
	}
}

// rule has the fields of otelc's rules that ours use.
type rule struct {
	Target string
	Where  struct{ Func, Recv string }
	Do     []struct {
		AddFile    struct{ File, Path string } `yaml:"add_file"`
		InjectCode struct{ Raw string }        `yaml:"inject_code"`
	}
}

// apply changes the packages in dirs, by import path, as otelc does while it compiles them: it adds
// files, and code at the beginning of functions. It skips functions that do not exist.
func apply(t *testing.T, dirs map[string]string) {
	t.Helper()
	var all map[string]rule
	decoder := yaml.NewDecoder(strings.NewReader(child.Read(t, "contrib/otelc/otelc.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	for name, r := range all {
		dir, ok := dirs[r.Target]
		if !ok || len(r.Do) != 1 {
			t.Fatalf("%s: target %q, %d modifiers", name, r.Target, len(r.Do))
		}
		if file := r.Do[0].AddFile.File; file != "" {
			child.Write(t, filepath.Join(dir, file),
				strings.Replace(child.Read(t, "contrib/otelc/"+file), "//go:build ignore", "", 1))
			continue
		}
		begin := "^func "
		if r.Where.Recv != "" {
			begin += `\(\w+ ` + regexp.QuoteMeta(r.Where.Recv) + `\) `
		}
		begin += r.Where.Func + `\((\w*).*\{$` // with the name of the first parameter
		code := strings.ReplaceAll(r.Do[0].InjectCode.Raw, "{{ .FuncArgument 0 }}", "$1")
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			child.Write(t, file, regexp.MustCompile("(?m)"+begin).ReplaceAllString(read(t, file),
				"$0\n"+code))
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
