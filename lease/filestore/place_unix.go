//go:build unix && !linux && !solaris && !aix

package filestore

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func space(string) (uint64, error) { return 0, errors.ErrUnsupported }

// place returns a directory's inode and device, and on macOS what the kernel draws when it starts.
func place(root *os.Root) (string, error) {
	info, err := root.Stat(".")
	if err != nil {
		return "", err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.ErrUnsupported
	}
	boot, _ := unix.Sysctl("kern.bootsessionuuid")
	return fmt.Sprintf("inode %d on device %d, boot %s", s.Ino, s.Dev, boot), nil
}
