package filestore

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// place returns a directory's inode and its time of birth, which no tool that copies files sets. If
// the file system does not keep that time, it returns inode and device instead: devices of NVMe,
// btrfs and overlay file systems may have other numbers after a restart of the machine.
func place(root *os.Root) (string, error) {
	d, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer d.Close()
	var s unix.Statx_t
	err = unix.Statx(int(d.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &s)
	if err != nil {
		return "", fmt.Errorf("statx: %w", err)
	}
	if s.Mask&unix.STATX_BTIME == 0 {
		return fmt.Sprintf("inode %d on device %d:%d", s.Ino, s.Dev_major, s.Dev_minor), nil
	}
	return fmt.Sprintf("inode %d since %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec), nil
}
