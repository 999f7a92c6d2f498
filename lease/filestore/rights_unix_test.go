//go:build unix

package filestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// CheckRights finds, without writing, what a process could not use, and the creation of a store
// agrees: it leaves a directory with other files alone.
func TestCheckRights(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"foreign/passwd": 0o700,
		"mounted/lost+found": 0o700, "locked/x": 0o500} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, name), 0o700),
			os.Chmod(filepath.Dir(filepath.Join(dir, name)), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, fileMode); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"new":           "",
		"dangling":      "no such file or directory",
		"mounted":       "", // a file system of its own
		"missing/store": "no such file or directory",
		"file":          syscall.ENOTDIR.Error(),
		"foreign":       "other files, such as passwd",
		"locked/store":  fs.ErrPermission.Error(),
	} {
		if path == "locked/store" && os.Geteuid() == 0 { // who may write everywhere
			continue
		}
		o := open(t, filepath.Join(dir, path))
		before, _ := os.ReadDir(o.path)
		rights := o.CheckRights(t.Context())
		after, _ := os.ReadDir(o.path)
		for _, err := range []error{rights, o.Prepare(t.Context())} {
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", path, err, want)
			}
		}
		if len(before) != len(after) {
			t.Errorf("%s: CheckRights has written %v", path, after)
		}
	}
}
