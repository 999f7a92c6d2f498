//go:build unix && !solaris && !aix

package filestore

import (
	"errors"
	"os"
	"syscall"
)

// errReadOnly is the error of a file system that is mounted read-only.
const errReadOnly = syscall.EROFS

// system locks the directory itself, which nobody can delete while it has files.
var system = disk{
	lock: func(root *os.Root) (*os.File, error) {
		f, err := root.Open(".")
		if err != nil {
			return nil, err
		}
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	},
	syncNames: func(root *os.Root, _ ...string) error {
		d, err := root.Open(".")
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	},
	place: place,
}
