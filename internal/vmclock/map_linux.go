//go:build linux && (amd64 || arm64)

package vmclock

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// mapPage maps the page at path for reading. The device allows one whole page, shared and
// read-only.
func mapPage(path string) (*page, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the mapping remains
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Memory past the end of a regular file cannot be read.
	if info.Mode().IsRegular() && info.Size() < sizeGeneration {
		return nil, fmt.Errorf("%s is too short: %d bytes, need at least %d", path, info.Size(),
			sizeGeneration)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	return (*page)(unsafe.Pointer(unsafe.SliceData(b))), nil
}
