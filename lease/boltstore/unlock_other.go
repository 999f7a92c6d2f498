//go:build windows || plan9 || solaris || aix || android

package boltstore

import "os"

func unlock(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}
