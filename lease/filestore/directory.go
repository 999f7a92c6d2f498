package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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
	// lockable opens the file in a directory on which the lock is taken.
	lockable func(*os.Root) (*os.File, error)
	// lock locks a file until it is closed. It waits while another process has locked it.
	lock func(*os.File) error
	// syncNames makes the renaming of files durable.
	syncNames func(root *os.Root, names ...string) error
	// place returns a text that differs from that of any copy of the directory, or "". It returns
	// an error for a directory that other hosts can mount.
	place func(*os.Root) (string, error)
	// space returns how many bytes this user may write to the file system of a path. It may be nil.
	space func(path string) (uint64, error)
}

// open opens the directory.
func (o *objects) open() (*os.Root, error) {
	root, err := os.OpenRoot(o.path)
	if info, unknown := os.Stat(o.path); err != nil && unknown == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: o.path, Err: syscall.ENOTDIR} // not os's own
	}
	return root, err
}

// create creates the directory, but not its parent, and opens it.
func (o *objects) create() (*os.Root, error) {
	err := os.Mkdir(o.path, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return o.open()
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the directory %s does not exist; create it, on a local disk that "+
				"all processes of the host see: %w",
				filepath.Dir(o.path), err)
		}
		return nil, err
	}
	above, err := os.OpenRoot(filepath.Dir(o.path))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.disk.syncNames(above, filepath.Base(o.path)),
		above.Close()); err != nil {
		return nil, err
	}
	return o.open()
}

// lock locks the directory that is at the path now. It waits for as long as other processes have
// locked it, and fails if ctx is over then.
func (o *objects) lock(ctx context.Context, open func() (*os.Root, error)) (*directory, error) {
	for {
		root, err := open()
		if err != nil {
			return nil, err
		}
		d := &directory{root: root, disk: o.disk}
		if d.lock, err = o.disk.lockable(root); err != nil {
			return nil, errors.Join(err, root.Close())
		}
		var opened, named fs.FileInfo
		if err = cmp.Or(o.disk.lock(d.lock), ctx.Err()); err == nil {
			opened, err = root.Stat(".")
		}
		if err == nil {
			named, err = os.Stat(o.path)
		}
		if err == nil && os.SameFile(opened, named) {
			if d.place, err = o.disk.place(root); err == nil {
				return d, nil
			}
		}
		if err = errors.Join(err, d.close()); err != nil {
			return nil, err
		} // otherwise another directory is in its place
	}
}

func (d *directory) close() error { return errors.Join(d.lock.Close(), d.root.Close()) }
