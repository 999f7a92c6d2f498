//go:build unix

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/traceflake/traceflake/lease"
)

// CheckRights implements [driver.Rights]. It asks whether this user may write in the directory, or in
// the one above it as long as there is none, and whether that is of a store.
func (s *store) CheckRights(context.Context) error {
	err := mayUse(s.objects.path)
	if err != nil {
		err = fmt.Errorf("filestore: %s: %w", s.objects.path, explain(err))
	}
	return err
}

func mayUse(path string) error {
	files, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		above := filepath.Dir(path)
		err = unix.Access(above, unix.W_OK|unix.X_OK)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("the directory %s does not exist; create it, on a local disk that all processes of the host see: %w", above, err)
		}
		return err
	}
	if err != nil {
		return err
	}
	foreign := ""
	for _, f := range files {
		switch name := f.Name(); {
		case name == "config":
			return unix.Access(path, unix.W_OK|unix.X_OK)
		case !strings.HasPrefix(name, "page-") && !strings.Contains(name, "."): // nothing of a store that is being created
			foreign = name
		}
	}
	if foreign != "" {
		return fmt.Errorf("%w: the directory has other files, such as %s, and no lease store", lease.ErrSchemaVersion, foreign)
	}
	return unix.Access(path, unix.W_OK|unix.X_OK)
}
