package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	secretA = "dffd6021bb2bd5b0af676290809ec3a5"
	secretB = "00112233445566778899aabbccddeeff"

	random = "4bf92f3577b34da6a3ce929d0e0e4736" // a trace ID
)

// asCommand makes the test's binary the command.
const asCommand = "TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main()
	}
	for _, name := range variables {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// result is the outcome of a command.
type result struct {
	code        int
	out, errOut string
}

// locked is a buffer to which several goroutines write.
type locked struct {
	mu sync.Mutex
	bytes.Buffer
	writes int
}

func (w *locked) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	return w.Buffer.Write(p)
}

func (w *locked) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Buffer.String()
}

// command runs the command in this process.
func command(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return commandIn(t.Context(), t, stdin, args...)
}

func commandIn(ctx context.Context, t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errOut locked
	r := result{code: run(ctx, args, strings.NewReader(stdin), &out, &errOut)}
	r.out, r.errOut = out.String(), errOut.String()
	// Neither a wrong format nor a secret may ever appear in the output.
	for _, never := range []string{"%!", secretA, secretB, "hunter2"} {
		if strings.Contains(strings.ToLower(r.out+r.errOut), never) {
			t.Errorf("%q prints %s:\n%s%s", args, never, r.out, r.errOut)
		}
	}
	return r
}

// want checks the code and the texts. If errOut is empty, no error may be printed.
func (r result) want(t *testing.T, code int, out, errOut string) {
	t.Helper()
	if r.code != code {
		t.Errorf("code %d, want %d", r.code, code)
	}
	if !strings.Contains(r.out, out) {
		t.Errorf("out %q, want %q", r.out, out)
	}
	if !strings.Contains(r.errOut, errOut) || errOut == "" && r.errOut != "" {
		t.Errorf("stderr %q, want %q", r.errOut, errOut)
	}
}

// something is any output.
const something = ""

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
