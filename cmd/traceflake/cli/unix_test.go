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

// A FIFO can be read only once, and the new secret would take its name: it is refused before
// anything is read or changed.
func TestReplaceSecretInAFIFO(t *testing.T) {
	_, file, old, _ := storeInUse(t)
	fifo := file + ".fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "", "lease", "secret", "replace", old, "--secret-file", fifo).want(t, 2, "",
		"is not a regular file")
}
