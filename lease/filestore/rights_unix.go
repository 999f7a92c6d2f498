//go:build unix && !solaris && !aix

package filestore

import (
	"cmp"
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
	path := o.path
	files, err := os.ReadDir(path)
	if _, missing := os.Lstat(path); errors.Is(missing, fs.ErrNotExist) { // no link either
		path = filepath.Dir(path)
		_, err = os.Stat(path)
	}
	if err == nil {
		err = cmp.Or(foreign(files), unix.Access(path, unix.W_OK|unix.X_OK))
	}
	if free, unknown := space(path); err == nil && unknown == nil && free < largest {
		err = fmt.Errorf("%s: %w: %d bytes are free", path, errFull, free)
	}
	return explain(err)
}
