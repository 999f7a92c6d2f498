//go:build !windows && !plan9 && !solaris && !aix && !android

package boltstore

import (
	"os"
	"syscall"
)

// unlock gives up the lock of a file that bbolt panicked on. Closing it is not
// enough: what bbolt mapped of it keeps it open.
func unlock(f *os.File) {
	if f != nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		_ = f.Close()
	}
}
