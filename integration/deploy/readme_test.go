package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// run builds the README's program and starts it after some commands.
func run(t *testing.T, program, commands string) (binary string, p *child.Server) {
	t.Helper()
	at, err := child.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(strings.Replace(program, "127.0.0.1:8080", at[0], 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	binary = child.Build(t, source)
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", commands+"\nexec "+binary)
	cmd.Dir = t.TempDir()
	p = start(t, cmd)
	p.Address, p.Answers = at[0], p.Listens
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return binary, p
}

// The README's program prints the span of a request. If the port is taken, it says so and ends. With
// the changes that the README shows for leases, and after its commands, it holds a lease while it
// runs, and has given it back after SIGTERM.
func TestQuickStart(t *testing.T) {
	readme := read(t, "README.md")
	_, program, ok := strings.Cut(readme, "```go\npackage main\n")
	program, _, _ = strings.Cut("package main\n"+program, "```")
	if lines := strings.Count(program, "\n"); !ok || lines > 36 {
		t.Errorf("the quick start has %d lines, want at most 36:\n%s", lines, program)
	}
	binary, service := run(t, program, "")
	header, _ := get(t, "http://"+service.Address)
	id := header.Get("x-trace-id")
	second, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
	if err != nil || !strings.Contains(string(second), "address already in use") {
		t.Errorf("the port is taken: %v, %s", err, second)
	}
	end(t, service)
	if out := service.Output(); id == "" || !strings.Contains(out, `"TraceID":"`+id+`"`) {
		t.Errorf("the response has the trace ID %q; the spans are\n%s", id, out)
	}

	_, leases, ok := strings.Cut(readme, "\n### 4. Leases\n")
	leases, _, _ = strings.Cut(leases, "\n## ")
	for _, diff := range regexp.MustCompile("(?s)```diff\n(.*?)```").FindAllStringSubmatch(leases, -1) {
		var before, after string
		for line := range strings.Lines(diff[1]) {
			if line[0] != '+' {
				before += line[1:]
			}
			if line[0] != '-' {
				after += line[1:]
			}
		}
		if strings.Count(program, before) != 1 {
			t.Fatalf("the quick start does not have these lines:\n%s", before)
		}
		program = strings.Replace(program, before, after, 1)
	}
	_, commands, _ := strings.Cut(leases, "```sh\n")
	commands, _, _ = strings.Cut(commands, "```")
	install, commands, _ := strings.Cut(commands, "\n")
	const shown = "postgres://user:password@host/db"
	if !ok || !strings.HasPrefix(install, "go install ") || strings.Count(commands, shown) != 1 {
		t.Fatalf("unexpected commands:\n%s\n%s", install, commands)
	}
	store, traceflake := child.ForTest(t, servers.Postgres).DSN(), child.Build(t, child.Traceflake)
	_, service = run(t, program, "traceflake() { "+traceflake+" \"$@\"; }\n"+strings.Replace(commands, shown, "'"+store+"'", 1))
	held := func(want int) {
		t.Helper()
		list, err := exec.CommandContext(t.Context(), traceflake, "lease", "list", "--store", store).CombinedOutput()
		if err != nil || strings.Count(string(list), "held by") != want {
			t.Errorf("lease list, of which %d are held: %v\n%s\n%s", want, err, list, service.Output())
		}
	}
	get(t, "http://"+service.Address)
	held(1)
	end(t, service)
	held(0)
}
