//go:build unix

package fleet_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/traceflake/traceflake/lease/fleet"
)

// The wait for a FIFO without a writer ends, and a file without an end is not read to its end.
func TestOddFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "secret")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{fifo: "not read within 3s",
		file(t, strings.Repeat("\n", 2<<20)+secret): "longer than 1 MiB"} {
		if _, err := fleet.LoadKeyring(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
