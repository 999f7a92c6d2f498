//go:build unix

package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/traceflake/traceflake/lease/fleet"
)

// A FIFO is read if somebody writes it, as in a shell's <(command). Otherwise it fails.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := fleet.LoadKeyring(path)
	if err == nil || !strings.Contains(err.Error(), "not read within 3s") {
		t.Errorf("without a writer: %v", err)
	}
	other := path + "2"
	if err := syscall.Mkfifo(other, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = os.WriteFile(other, []byte("dffd6021bb2bd5b0af676290809ec3a5\n"), 0o600)
	}()
	if k, err := fleet.LoadKeyring(other); err != nil || k.Codec() == nil {
		t.Errorf("with a writer: %v", err)
	}
}
