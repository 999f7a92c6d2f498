package tracing

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

// readme returns the README's quick start and its section on leases.
func readme(t *testing.T) (program, leases string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ = strings.Cut(string(text), "```go\npackage main\n")
	program, _, ok := strings.Cut("package main\n"+program, "```")
	_, leases, found := strings.Cut(string(text), "\n### 4. Leases\n")
	leases, _, _ = strings.Cut(leases, "\n## ")
	if !ok || !found {
		t.Fatal("the README has no quick start or no section on leases")
	}
	return program, leases
}

// buildProgram compiles the README's program, which then serves url.
func buildProgram(t *testing.T, program string) (binary, url string) {
	t.Helper()
	at, err := child.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "main.go")
	program = strings.Replace(program, "127.0.0.1:8080", at[0], 1)
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	return child.Build(t, source), "http://" + at[0]
}

// terminate stops a service as a deployment does.
func terminate(t *testing.T, service *exec.Cmd) {
	t.Helper()
	if err := service.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := service.Wait(); err != nil {
		t.Errorf("%v\n%s", err, service.Stdout)
	}
}

// TestQuickStart builds the README's program, sends it a request and stops it. If the port is
// taken, the program says so and ends.
func TestQuickStart(t *testing.T) {
	program, _ := readme(t)
	if lines := strings.Count(program, "\n"); lines > 36 {
		t.Errorf("the quick start has %d lines, want at most 36:\n%s", lines, program)
	}
	binary, url := buildProgram(t, program)
	var stdout bytes.Buffer
	service := exec.CommandContext(t.Context(), binary)
	service.Stdout = &stdout
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	id := traceIDOf(t, url)
	second, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
	if err != nil || !strings.Contains(string(second), "address already in use") {
		t.Errorf("the port is taken: %v, %s", err, second)
	}
	terminate(t, service)
	if id == "" || !strings.Contains(stdout.String(), `"TraceID":"`+id+`"`) {
		t.Errorf("the response has the trace ID %q; the spans are\n%s", id, &stdout)
	}
}

// TestQuickStartWithLeases applies the changes that the README shows for leases and runs its
// commands: the service holds a lease while it runs, and has given it back after SIGTERM.
func TestQuickStartWithLeases(t *testing.T) {
	program, leases := readme(t)
	store := servers.PostgresForTest(t).DSN()
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
	if !strings.HasPrefix(install, "go install ") || strings.Count(commands, shown) != 1 {
		t.Fatalf("unexpected commands:\n%s\n%s", install, commands)
	}
	commands = strings.Replace(commands, shown, "'"+store+"'", 1)

	binary, url := buildProgram(t, program)
	traceflake := child.Build(t, child.Traceflake)
	service := exec.CommandContext(t.Context(), "bash", "-ec",
		"traceflake() { "+traceflake+" \"$@\"; }\n"+commands+"\nexec "+binary)
	service.Dir = t.TempDir()
	var out bytes.Buffer
	service.Stdout, service.Stderr = &out, &out
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	list := func() string {
		t.Helper()
		text, err := exec.CommandContext(t.Context(), traceflake, "lease", "list", "--store", store).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return string(text)
	}
	traceIDOf(t, url)
	if text := list(); strings.Count(text, "held by") != 1 {
		t.Errorf("while the service runs, lease list shows\n%s", text)
	}
	terminate(t, service)
	if text := list(); strings.Contains(text, "held by") {
		t.Errorf("after SIGTERM, lease list shows\n%s\n%s", text, &out)
	}
}

// traceIDOf returns the x-trace-id in the response of a service that is just starting.
func traceIDOf(t *testing.T, url string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
			return response.Header.Get("x-trace-id")
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
