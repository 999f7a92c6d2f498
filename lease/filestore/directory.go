package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/traceflake/traceflake/internal/vmclock"
)

// directory is a store's directory, open and locked.
type directory struct {
	root  *os.Root
	lock  *os.File
	disk  disk
	place string
}

// disk holds the functions that differ between operating systems; tests replace them.
type disk struct {
	// lock locks the directory until the file that it returns is closed. It waits while another
	// process has locked it.
	lock func(*os.Root) (*os.File, error)
	// syncName makes the renaming of a file durable.
	syncName func(root *os.Root, name string) error
	// place returns a text that differs from that of a copy of the directory, and after a restart
	// of the machine, if the system shows it. It returns an error for a directory that other hosts
	// can mount.
	place func(*os.Root) (string, error)
}

// open opens the directory. The dot is for the system's error if the path is a file.
func (o *objects) open() (*os.Root, error) { return os.OpenRoot(o.path + "/.") }

// create opens the directory. It creates it, but not its parent, unless it has other files.
func (o *objects) create() (*os.Root, error) {
	err := os.Mkdir(o.path, dirMode)
	if errors.Is(err, fs.ErrExist) {
		files, unread := os.ReadDir(o.path + "/.")
		if err = cmp.Or(unread, foreign(files)); err == nil {
			return o.open()
		}
	}
	if err != nil {
		return nil, err
	}
	above, err := os.OpenRoot(filepath.Dir(o.path))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.disk.syncName(above, filepath.Base(o.path)),
		above.Close()); err != nil {
		return nil, err
	}
	return o.open()
}

// lock opens and locks the directory. It waits for as long as other processes have locked it, and
// fails if ctx is over then. If another directory takes the path meanwhile, the call still acts on
// this one, which nobody mistakes for the other: their places differ.
func (o *objects) lock(ctx context.Context, open func() (*os.Root, error)) (*directory, error) {
	root, err := open()
	if err != nil {
		return nil, err
	}
	lock, err := o.disk.lock(root)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	d := &directory{root: root, lock: lock, disk: o.disk}
	if err = context.Cause(ctx); err == nil {
		d.place, err = o.disk.place(root)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.place += restores()
	return d, nil
}

func (d *directory) close() error { return errors.Join(d.lock.Close(), d.root.Close()) }

// restores returns a text that changes when this machine is restored from a snapshot. It is
// constant on machines that have only the disruption marker: live migration changes the marker but
// does not copy the directory.
func restores() string {
	machine := vmclock.System()
	generation := machine.Generation()
	if source, _ := machine.Status(); source != vmclock.GenerationCounter {
		return ""
	}
	return fmt.Sprintf(", restore %d", generation)
}
