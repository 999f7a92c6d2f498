package tracing

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestQuickStart builds the README's program, sends it a request and stops it.
func TestQuickStart(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(readme), "```go\npackage main\n")
	program, _, ok := strings.Cut("package main\n"+program, "```")
	if lines := strings.Count(program, "\n"); !ok || lines > 30 {
		t.Errorf("the quick start has %d lines, want at most 30:\n%s", lines, program)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "quickstart")
	program = strings.Replace(program, "127.0.0.1:8080", address, 1)
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	var stdout bytes.Buffer
	service := exec.CommandContext(t.Context(), binary)
	service.Stdout = &stdout
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	id := traceIDOf(t, "http://"+address)
	if err := service.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := service.Wait(); err != nil {
		t.Error(err)
	}
	if id == "" || !strings.Contains(stdout.String(), `"TraceID":"`+id+`"`) {
		t.Errorf("the response has the trace ID %q; the spans are\n%s", id, &stdout)
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
