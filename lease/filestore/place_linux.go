package filestore

import (
	"fmt"
	"os"

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

// statfs returns the type and the ID of a file's file system. A test replaces it.
var statfs = func(f *os.File) (kind uint32, id [2]int32, err error) {
	var s unix.Statfs_t
	err = unix.Fstatfs(int(f.Fd()), &s)
	return uint32(s.Type), s.Fsid.Val, err
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

// place returns a directory's inode and its time of birth, which no tool that copies files sets. If
// the file system does not keep that time, it returns inode and device instead: devices of NVMe,
// btrfs and overlay file systems may have other numbers after a restart of the machine.
//
// A snapshot of btrfs and a container of an image have both. Their file systems have other IDs,
// which survive a remount. On others, such as XFS, the ID is that of the device, in 32 bits.
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
	kind, id, err := statfs(d)
	if err != nil {
		return "", fmt.Errorf("statfs: %w", err)
	}
	if name := remote[kind]; name != "" {
		return "", fmt.Errorf("%w: the directory is on %s, which other hosts can mount: choose "+
			"one on a local disk", lease.ErrMisconfigured, name)
	}
	text := fmt.Sprintf("inode %d since %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
	if s.Mask&unix.STATX_BTIME == 0 {
		text = fmt.Sprintf("inode %d on device %d:%d", s.Ino, s.Dev_major, s.Dev_minor)
	}
	if (kind == unix.BTRFS_SUPER_MAGIC || kind == unix.OVERLAYFS_SUPER_MAGIC) && id[1] != 0 {
		text += fmt.Sprintf(" on file system %08x%08x", uint32(id[0]), uint32(id[1]))
	}
	return text, nil
}
