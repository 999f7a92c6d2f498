package filestore

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/lease"
)

// After a start of the machine, also of one from an image with the directory, it is another place.
func TestBoot(t *testing.T) {
	defer func(was string) { bootID = was }(bootID)
	o := open(t, newPath(t))
	original := calls.NewPlace(t, o)
	bootID = filepath.Join(t.TempDir(), "boot_id")
	if err := os.WriteFile(bootID, []byte("another\n"), fileMode); err != nil {
		t.Fatal(err)
	}
	original.Refuses(t, o)
	bootID += ".missing"
	_, err := o.Read(t.Context(), "config")
	wantError(t, "without a boot ID", err, lease.ErrMisconfigured, "mount /proc")
}

// After the machine was restored from a snapshot, as vmclock shows it, it is another place.
func TestRestoredMachine(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "vmclock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// magic, size, version, a counter of updates, flags, and the generation
	page := append([]byte("VCLK\x70\x00\x00\x00\x01"), make([]byte, 103)...)
	page[25] = 1
	restore := func() {
		page[12] += 2
		page[104]++
		if _, err := f.WriteAt(page, 0); err != nil {
			t.Fatal(err)
		}
	}
	restore()
	machine, err := vmclock.Open(f.Name())
	if err != nil {
		t.Skip(err)
	}
	defer func(was func() *vmclock.Machine) { vmclock.System = was }(vmclock.System)
	vmclock.System = func() *vmclock.Machine { return machine }
	o := open(t, newPath(t))
	original := calls.NewPlace(t, o)
	restore()
	original.Refuses(t, o)
}

// A directory that other hosts can mount is refused, and left alone.
func TestRemote(t *testing.T) {
	path := t.TempDir()
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		t.Fatal(err)
	}
	remote[uint32(s.Type)] = "NFS"
	defer delete(remote, uint32(s.Type))
	_, err := Secret(t.Context(), path)
	wantError(t, "NFS", err, lease.ErrMisconfigured, "choose one on a local disk")
	if files, err := os.ReadDir(path); err != nil || len(files) > 0 {
		t.Errorf("NFS: the directory has %v, %v", files, err)
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
	overlay := func(target, lower, upper string) *objects {
		if err := unix.Mount("overlay", at(target), "overlay", 0, "lowerdir="+at(lower)+
			",upperdir="+at(upper)+",workdir="+at(upper+".work")); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at(target), unix.MNT_DETACH) })
		return open(t, filepath.Join(at(target), "leases"))
	}
	original := calls.NewPlace(t, overlay("image", "empty", "layer"))
	if err := unix.Unmount(at("image"), 0); err != nil {
		t.Fatal(err)
	}
	again, err := overlay("image", "empty", "layer").Read(t.Context(), "config")
	if err != nil || again.Place != original.Place {
		t.Errorf("mounted again: the place is %q, %v; want %q", again.Place, err, original.Place)
	}
	original.Refuses(t, overlay("container", "layer", "upper"))
}
