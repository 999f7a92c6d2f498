package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// directory is a store's directory, open and locked.
type directory struct {
	root *os.Root
	lock *os.File
	disk disk
}

// disk holds the functions that differ between operating systems; tests replace them.
type disk struct {
	// lockable opens the file in a directory on which the lock is taken.
	lockable func(*os.Root) (*os.File, error)
	// tryLock locks a file until it is closed, unless another process has locked it.
	tryLock func(*os.File) (bool, error)
	// syncNames makes the renaming of files durable.
	syncNames func(root *os.Root, names ...string) error
	// place returns a text that differs from that of any copy of the directory, or "".
	place func(*os.Root) (string, error)
}

// open opens the directory.
func (o *objects) open() (*os.Root, error) { return os.OpenRoot(o.path) }

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

// lock locks the directory that is at the path now. It tries until ctx is over, or for the timeout.
func (o *objects) lock(ctx context.Context, open func() (*os.Root, error)) (*directory, error) {
	for began := time.Now(); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := o.tryLock(open)
		if d != nil || err != nil {
			return d, err
		}
		if time.Since(began) > o.timeout {
			return nil, fmt.Errorf("%w for %s", errLocked, o.timeout)
		}
		time.Sleep(time.Millisecond + rand.N(9*time.Millisecond))
	}
}

// tryLock returns nil if another process has locked the directory, or if the directory was
// replaced.
func (o *objects) tryLock(open func() (*os.Root, error)) (_ *directory, err error) {
	root, err := open()
	if err != nil {
		return nil, err
	}
	d := &directory{root: root, disk: o.disk}
	if d.lock, err = o.disk.lockable(root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	ours, err := o.disk.tryLock(d.lock)
	if err == nil && ours {
		var opened, named fs.FileInfo
		if opened, err = root.Stat("."); err == nil {
			named, err = os.Stat(o.path)
		}
		if err == nil && os.SameFile(opened, named) {
			return d, nil
		}
	}
	return nil, errors.Join(err, d.close())
}

func (d *directory) close() error { return errors.Join(d.lock.Close(), d.root.Close()) }
