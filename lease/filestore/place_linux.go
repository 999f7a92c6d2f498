package filestore

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/traceflake/traceflake/lease"
)

// remote contains the types of file systems that several hosts can mount.
var remote = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "SMB",
	unix.CEPH_SUPER_MAGIC:  "CephFS",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.NCP_SUPER_MAGIC:   "NCP",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	0x01161970:             "GFS2",
	0x0bd00bd0:             "Lustre",
	0x19830326:             "BeeGFS",
	0x20030528:             "OrangeFS",
	0x47504653:             "GPFS",
}

// space returns how many bytes this user may write to the file system of a path.
func space(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("statfs: %w", err)
	}
	blocks := s.Bavail
	if os.Geteuid() == 0 {
		blocks = s.Bfree
	}
	return blocks * uint64(s.Bsize), nil
}

// bootID is drawn by the kernel when it starts. A test replaces it.
var bootID = "/proc/sys/kernel/random/boot_id"

// place returns the kernel's boot ID, and a directory's inode and time of birth, which no tool that
// copies files sets, or the device on a file system that does not keep that time. A snapshot of
// btrfs and a container of an image have both; their file systems have other IDs.
func place(root *os.Root) (string, error) {
	d, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer d.Close()
	var x unix.Statx_t
	err = unix.Statx(int(d.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &x)
	if err != nil {
		return "", fmt.Errorf("statx: %w", err)
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(d.Fd()), &s); err != nil {
		return "", fmt.Errorf("statfs: %w", err)
	}
	if name := remote[uint32(s.Type)]; name != "" {
		return "", fmt.Errorf("%w: the directory is on %s, which other hosts can mount: choose "+
			"one on a local disk", lease.ErrMisconfigured, name)
	}
	boot, err := os.ReadFile(bootID)
	if err != nil {
		// without err, whose fs.ErrNotExist would be about the directory
		return "", &lease.Error{Err: fmt.Errorf("%w: %s cannot be read", lease.ErrMisconfigured,
			bootID),
			Fix: "mount /proc, which shows the kernel's boot ID"}
	}
	born := fmt.Sprintf("since %d.%09d", x.Btime.Sec, x.Btime.Nsec)
	if x.Mask&unix.STATX_BTIME == 0 {
		born = fmt.Sprintf("on device %d:%d", x.Dev_major, x.Dev_minor)
	}
	return fmt.Sprintf("inode %d %s, file system %08x%08x, boot %s", x.Ino, born,
		uint32(s.Fsid.Val[0]), uint32(s.Fsid.Val[1]), strings.TrimSpace(string(boot))), nil
}
