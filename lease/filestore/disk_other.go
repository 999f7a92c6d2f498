//go:build !windows && (!unix || solaris || aix)

package filestore

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

var errReadOnly, errFull = errors.New("read-only"), errors.New("full") // never returned

// system has no locks, and so no store.
var system = disk{lock: func(*os.Root) (*os.File, error) {
	return nil, fmt.Errorf("filestore: directories cannot be locked on %s: %w", runtime.GOOS,
		errors.ErrUnsupported)
}}
