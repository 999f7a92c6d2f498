//go:build !windows && !plan9 && !solaris && !aix && !android

package boltstore

import (
	"os"
	"syscall"
)

// unlock releases the lock of a file on which bbolt panicked. Closing it is not
// enough: bbolt's memory mapping keeps it open.
func unlock(f *os.File) {
	if f != nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		_ = f.Close()
	}
}
