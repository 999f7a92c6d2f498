package filestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

const (
	errReadOnly = windows.ERROR_WRITE_PROTECT
	errFull     = windows.ERROR_DISK_FULL
)

// system locks a file, since directories cannot be locked; nobody can delete it while it is open.
// It syncs the renamed files, since directories cannot be synced; this was not tested with a power
// failure.
var system = disk{
	lock: func(root *os.Root) (*os.File, error) {
		f, err := root.OpenFile("lock.file", os.O_RDWR|os.O_CREATE, fileMode)
		if err != nil {
			return nil, err
		}
		for { // a handle may be one that does not wait
			err := windows.LockFileEx(windows.Handle(f.Fd()),
				windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
				0, 1, 0, new(windows.Overlapped))
			switch {
			case err == nil:
				return f, nil
			case !errors.Is(err, windows.ERROR_LOCK_VIOLATION):
				return nil, errors.Join(err, f.Close())
			}
			time.Sleep(time.Millisecond + rand.N(9*time.Millisecond))
		}
	},
	syncName: func(root *os.Root, name string) error {
		f, err := root.OpenFile(name, os.O_RDWR, 0)
		if err != nil { // a directory cannot be opened, nor can what is not there
			return nil //nolint:nilerr // then nothing was renamed
		}
		return errors.Join(f.Sync(), f.Close())
	},
	place: place,
}

// place returns a directory's volume, index and time of creation.
func place(root *os.Root) (string, error) {
	d, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer d.Close()
	var i windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(d.Fd()), &i); err != nil {
		return "", fmt.Errorf("GetFileInformationByHandle: %w", err)
	}
	return fmt.Sprintf("volume %08x, index %08x%08x since %d", i.VolumeSerialNumber,
		i.FileIndexHigh, i.FileIndexLow, i.CreationTime.Nanoseconds()), nil
}
