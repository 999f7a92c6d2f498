//go:build !windows && (!unix || solaris || aix)

package filestore

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Errors that are never returned here.
var (
	errReadOnly = errors.New("read-only")
	errFull     = errors.New("full")
)

// system has no locks, and so no store.
var system = disk{lockable: func(*os.Root) (*os.File, error) {
	return nil, fmt.Errorf("filestore: directories cannot be locked on %s: %w", runtime.GOOS,
		errors.ErrUnsupported)
}}
