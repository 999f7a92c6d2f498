//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A directory that another process has locked is reported, and so is that its check failed.
func TestLockedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "leases")
	command(t, "", "lease", "create", "--store", "file:"+dir).want(t, 0, "leases of up to 1d", "")
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	r := command(t, "", "doctor", "--store", "file:"+dir)
	r.want(t, 1, "WRONG  store", "")
	r.want(t, 1, "the directory is locked by other processes", "")
	r.want(t, 1, "→ wait until the other process releases the lock", "")
}
