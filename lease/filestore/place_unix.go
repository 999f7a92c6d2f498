//go:build unix && !linux && !solaris && !aix

package filestore

import (
	"fmt"
	"os"
	"syscall"
)

var space func(path string) (uint64, error) // not known

// place returns a directory's inode and device.
func place(root *os.Root) (string, error) {
	info, err := root.Stat(".")
	if err != nil {
		return "", err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", nil
	}
	return fmt.Sprintf("inode %d on device %d", s.Ino, s.Dev), nil
}
