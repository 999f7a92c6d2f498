// Package deploy has the tests of what users start: the README's quick start, and the manifests of
// deploy/kubernetes, which are what setup reads, what the example service does, and what a real API
// server accepts.
package deploy

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
)

func TestMain(m *testing.M) { kubernetes.Main(m) }

// root is the repository.
const root = "../.."

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// get expects the status 200.
func get(t *testing.T, url string, headers ...string) (header http.Header, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s, %v", url, response.Status, body, err)
	}
	return response.Header, string(body)
}

// start starts a program, which is killed when the test ends.
func start(t *testing.T, cmd *exec.Cmd) *child.Server {
	t.Helper()
	p := &child.Server{Name: cmd.Path, Command: func() *exec.Cmd { return cmd }}
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

// await waits until a program has written n texts that match, and returns them.
func await(t *testing.T, p *child.Server, n int, pattern string) []string {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if found := regexp.MustCompile(pattern).FindAllString(p.Output(), n); len(found) == n {
			return found
		}
		if time.Now().After(end) {
			t.Fatalf("nothing like %q in\n%s", pattern, p.Output())
		}
	}
}

// served is the pattern of an address where a program serves.
const served = `http://127\.0\.0\.1:\d+`

// end ends a program as the kubelet does.
func end(t *testing.T, p *child.Server) {
	t.Helper()
	if err := p.Terminate(); err != nil {
		t.Errorf("%v\n%s", err, p.Output())
	}
}
