package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file without an end, such as a device, is refused.
func TestEndlessKeyring(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := readKeyring(path)
	if err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("got %v, want an error that names the limit", err)
	}
}
