package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"
)

// ErrNotInstalled is returned if a server is not installed and no address of another one is set.
var ErrNotInstalled = errors.New("not installed")

// Installed finds a file of a server below .cache. The error wraps [ErrNotInstalled] and ends in
// advice.
func Installed(pattern, advice string) (file string, err error) {
	found, err := filepath.Glob(filepath.Join(Repository, ".cache", pattern))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%s: %w: %s", pattern, ErrNotInstalled, advice)
	}
	return found[0], nil
}

// ForTest starts a server for a test, and closes it when the test ends. A test whose server is not
// installed is skipped, or fails if CI is set.
func ForTest[S io.Closer](tb testing.TB, start func(context.Context) (S, error)) S {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, err := start(ctx)
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" {
		tb.Skip(err)
	} else if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Traceflake is the package of the command.
const Traceflake = "github.com/traceflake/traceflake/cmd/traceflake"

// Build compiles a package of the workspace, or a file, for a test, and returns the program's path.
func Build(tb testing.TB, what string) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "program")
	if out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", path,
		what).CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return path
}

// Output runs a command to its end, expects an exit code, and returns what it wrote.
func Output(tb testing.TB, code int, cmd *exec.Cmd) string {
	tb.Helper()
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		tb.Fatalf("%s: exit code %d, want %d: %v\n%s", cmd, got, code, err, out)
	}
	return string(out)
}

// Run starts a program for a test, and kills it when the test ends.
func Run(tb testing.TB, cmd *exec.Cmd) *Server {
	tb.Helper()
	p := &Server{Name: cmd.Path, Command: func() *exec.Cmd { return cmd }}
	if err := p.Run(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Kill() })
	return p
}

// Served is the pattern of an address where a program serves, for [Await].
const Served = `http://127\.0\.0\.1:\d+`

// Await waits until a program has written n texts that match, and returns them.
func Await(tb testing.TB, p *Server, n int, pattern string) []string {
	tb.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if found := regexp.MustCompile(pattern).FindAllString(p.Output(), n); len(found) == n {
			return found
		}
		if time.Now().After(end) {
			tb.Fatalf("nothing like %q in\n%s", pattern, p.Output())
		}
	}
}

// Get sends a request with headers, and expects the status 200.
func Get(tb testing.TB, url string, headers ...string) (header http.Header, text string) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		tb.Fatalf("%s: %s %s, %v", url, response.Status, body, err)
	}
	return response.Header, string(body)
}

// Read returns a file of the repository.
func Read(tb testing.TB, file string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(Repository, file))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Write writes a file.
func Write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Matches compares a file of the repository with a text that it must have. TRACEFLAKETEST_UPDATE=1
// writes it instead.
func Matches(tb testing.TB, file, text string) {
	tb.Helper()
	if os.Getenv("TRACEFLAKETEST_UPDATE") != "" {
		Write(tb, filepath.Join(Repository, file), text)
	}
	if Read(tb, file) != text {
		tb.Errorf("%s differs; TRACEFLAKETEST_UPDATE=1 writes it again. Got\n%s", file, text)
	}
}

// Blocks returns the blocks of code in a page that are in a language.
func Blocks(page, language string) (blocks []string) {
	fenced := regexp.MustCompile("(?s)```" + language + "\n(.*?)```")
	for _, m := range fenced.FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// Repository is the folder of the repository.
var Repository = func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../..")
}()
