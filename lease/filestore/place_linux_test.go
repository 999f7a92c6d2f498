package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/traceflake/traceflake/lease"
)

// After a start of the machine, also of one from an image with the directory, it is another place.
func TestBoot(t *testing.T) {
	defer func(was string) { bootID = was }(bootID)
	path := newPath(t)
	open(t, path)
	bootID = filepath.Join(t.TempDir(), "boot_id")
	if err := os.WriteFile(bootID, []byte("another\n"), fileMode); err != nil {
		t.Fatal(err)
	}
	wantMoved(t, "after a start", path)
	bootID += ".missing"
	if _, err := unopened(t, path).Describe(t.Context()); !errors.Is(err, lease.ErrMisconfigured) {
		t.Errorf("without a boot ID: %v", err)
	}
}

// A directory that other hosts can mount is refused, and left alone.
func TestRemote(t *testing.T) {
	path := newPath(t)
	if err := os.Mkdir(path, dirMode); err != nil {
		t.Fatal(err)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		t.Fatal(err)
	}
	remote[uint32(s.Type)] = "NFS"
	defer delete(remote, uint32(s.Type))
	if err := ensure(t, unopened(t, path)); !errors.Is(err, lease.ErrMisconfigured) {
		t.Errorf("NFS: %v, want %v", err, lease.ErrMisconfigured)
	}
	if files, err := os.ReadDir(path); err != nil || len(files) > 0 {
		t.Errorf("NFS: the directory has %v, %v", files, err)
	}
}

// The place has the time of birth, if the file system keeps it: inodes are used again.
func TestBirth(t *testing.T) {
	root, err := unopened(t, newPath(t)).objects.create()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	at, err := place(root)
	var s unix.Statx_t
	err = errors.Join(err, unix.Statx(unix.AT_FDCWD, root.Name(), 0, unix.STATX_BTIME, &s))
	if err != nil || s.Mask&unix.STATX_BTIME != 0 && !strings.Contains(at, " since ") {
		t.Errorf("the place is %q, %v", at, err)
	}
}

// A container of an image with a store has a copy. A remount is none.
func TestContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount file systems")
	}
	dir := t.TempDir()
	at := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, dirMode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	overlay := func(target, lower, upper string) string {
		if err := unix.Mount("overlay", at(target), "overlay", 0, "lowerdir="+at(lower)+
			",upperdir="+at(upper)+",workdir="+at(upper+".work")); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at(target), unix.MNT_DETACH) })
		return filepath.Join(at(target), "leases")
	}
	open(t, overlay("image", "empty", "layer"))
	if err := unix.Unmount(at("image"), 0); err != nil {
		t.Fatal(err)
	}
	open(t, overlay("image", "empty", "layer"))
	wantMoved(t, "a container", overlay("container", "layer", "upper"))
}
