//go:build unix

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// largest is about the size of the largest page.
const largest = 1 << 20

// CheckRights checks whether this user may write to the directory, or to its parent if the
// directory does not exist, whether the disk has space for a page, and whether the directory
// belongs to a store.
func (o *objects) CheckRights(context.Context) error {
	err := mayUse(o.path)
	if err == nil && o.disk.space != nil {
		free, unknown := o.disk.space(o.path)
		if errors.Is(unknown, fs.ErrNotExist) {
			free, unknown = o.disk.space(filepath.Dir(o.path))
		}
		if unknown == nil && free < largest {
			err = fmt.Errorf("%s: %w (%d bytes are free)", o.path, errFull, free)
		}
	}
	return explain(err)
}

func mayUse(path string) error {
	files, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		above := filepath.Dir(path)
		err = unix.Access(above, unix.W_OK|unix.X_OK)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the directory %s does not exist; create it, on a local disk that "+
				"all processes of the host see: %w", above, err)
		}
		return err
	}
	if err == nil {
		err = foreign(files)
	}
	if err != nil {
		return err
	}
	return unix.Access(path, unix.W_OK|unix.X_OK)
}
