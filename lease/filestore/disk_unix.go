//go:build unix && !solaris && !aix

package filestore

import (
	"errors"
	"os"
	"syscall"
)

// Errors of a file system that is mounted read-only, or full.
const (
	errReadOnly = syscall.EROFS
	errFull     = syscall.ENOSPC
)

// system locks the directory itself, which nobody can delete while it has files.
var system = disk{
	lockable: func(root *os.Root) (*os.File, error) { return root.Open(".") },
	lock: func(f *os.File) error {
		for {
			err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
			if !errors.Is(err, syscall.EINTR) {
				return err
			}
		}
	},
	syncNames: func(root *os.Root, _ ...string) error {
		d, err := root.Open(".")
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	},
	place: place,
	space: space,
}
