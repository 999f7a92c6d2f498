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

// refused checks that a process on a directory is refused with an error.
func refused(t *testing.T, what, path string, want error) {
	t.Helper()
	if _, err := ensure(t, unopened(t, path)); !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// A fake statfs returns the types and IDs of file systems that a machine seldom has.
func TestFileSystems(t *testing.T) {
	defer func(was func(*os.File) (uint32, [2]int32, error)) { statfs = was }(statfs)
	var kind uint32
	var id [2]int32
	statfs = func(*os.File) (uint32, [2]int32, error) { return kind, id, nil }
	for _, c := range []struct {
		name          string
		kind          uint32
		first, second [2]int32
		moved         bool
	}{
		{"a snapshot of btrfs", unix.BTRFS_SUPER_MAGIC, [2]int32{1, 2}, [2]int32{1, 3}, true},
		{"a container", unix.OVERLAYFS_SUPER_MAGIC, [2]int32{1, 2}, [2]int32{2, 2}, true},
		{"another device", unix.OVERLAYFS_SUPER_MAGIC, [2]int32{1, 0}, [2]int32{2, 0}, false},
		{"ext4", unix.EXT4_SUPER_MAGIC, [2]int32{1, 2}, [2]int32{2, 2}, false},
	} {
		path := newPath(t)
		kind, id = c.kind, c.first
		open(t, path)
		id = c.second
		if c.moved {
			refused(t, c.name, path, lease.ErrMoved)
		} else {
			open(t, path)
		}
	}

	path := newPath(t)
	kind = unix.NFS_SUPER_MAGIC
	refused(t, "NFS", path, lease.ErrMisconfigured)
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
	refused(t, "a container", overlay("container", "layer", "upper"), lease.ErrMoved)
}
