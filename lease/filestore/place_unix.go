//go:build unix && !linux && !solaris && !aix

package filestore

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

func space(string) (uint64, error) { return 0, errors.ErrUnsupported }

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
