//go:build unix && !solaris && !aix

package filestore

import (
	"errors"
	"os"
	"syscall"
)

// Errors of file systems that are mounted read-only, and of full ones.
const (
	errReadOnly = syscall.EROFS
	errFull     = syscall.ENOSPC
)

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
	syncName: func(root *os.Root, _ string) error {
		d, err := root.Open(".")
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	},
	place: place,
}
