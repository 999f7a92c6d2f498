//go:build unix

package filestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/traceflake/traceflake/lease"
)

// CheckRights finds, without writing, what a process could not use: nothing is created.
func TestCheckRights(t *testing.T) {
	dir := t.TempDir()
	file, foreign, locked := filepath.Join(dir, "file"), filepath.Join(dir, "foreign"),
		filepath.Join(dir, "locked")
	for _, d := range []string{foreign, locked} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{file, filepath.Join(foreign, "passwd")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mounted := filepath.Join(dir, "mounted", "lost+found") // a file system of its own
	if err := os.MkdirAll(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	open(t, filepath.Join(dir, "store"))
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	type result struct {
		path, want string
	}
	cases := []result{
		{"store", ""},
		{"new", ""},
		{"mounted", ""},
		{"missing/store", "create it, on a local disk"},
		{"file", syscall.ENOTDIR.Error()},
		{"foreign", "other files, such as passwd"},
	}
	if os.Geteuid() != 0 { // who may write everywhere
		cases = append(cases, result{"locked", fs.ErrPermission.Error()},
			result{"locked/store", fs.ErrPermission.Error()})
	}
	for _, c := range cases {
		s, err := New(filepath.Join(dir, c.path))
		if err != nil {
			t.Fatal(err)
		}
		err = s.CheckRights(t.Context())
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a directory was created")
	}
}

// A disk without space for a page is found, whether the directory exists or not.
func TestNoSpace(t *testing.T) {
	dir := t.TempDir()
	s, err := New(filepath.Join(dir, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	free := map[string]uint64{dir: largest - 1} // by path
	s.(*store).objects.disk.space = func(path string) (uint64, error) {
		if bytes, ok := free[path]; ok {
			return bytes, nil
		}
		return 0, fs.ErrNotExist
	}
	for range 2 {
		err := s.CheckRights(t.Context())
		if !errors.Is(err, errFull) || !strings.Contains(lease.Fix(err), "free some space") {
			t.Errorf("%v → %q", err, lease.Fix(err))
		}
		free[filepath.Join(dir, "leases")], free[dir] = largest-1, largest
	}
	free[filepath.Join(dir, "leases")] = largest
	if err := s.CheckRights(t.Context()); err != nil {
		t.Error(err)
	}
	if bytes, err := space(dir); runtime.GOOS == "linux" && (err != nil || bytes == 0) {
		t.Errorf("%d bytes are free, %v", bytes, err)
	}
}

// A store is not created in a directory with other files, as CheckRights reports, but in an empty
// file system.
func TestCreateInOthersDirectory(t *testing.T) {
	dir := t.TempDir()
	for entry, mine := range map[string]bool{"passwd": false, "lost+found": true} {
		path := filepath.Join(dir, "with-"+entry)
		if err := os.MkdirAll(filepath.Join(path, entry), dirMode); err != nil {
			t.Fatal(err)
		}
		_, err := ensure(t, unopened(t, path))
		said := unopened(t, path).CheckRights(t.Context())
		if mine && errors.Join(err, said) != nil || !mine &&
			!errors.Is(err, lease.ErrSchemaVersion) ||
			(err == nil) != (said == nil) {
			t.Errorf("%s: Ensure gives %v, CheckRights %v", entry, err, said)
		}
		if files, err := os.ReadDir(path); !mine && (err != nil || len(files) != 1) {
			t.Errorf("%s: %v, %v; want what was there", entry, files, err)
		}
	}
}
