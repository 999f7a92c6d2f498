package filestore

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// blocksPerPage makes 16 files of 16384 blocks: each is synced when a history is begun, and only
// blocks that were granted take room.
const blocksPerPage = 1024

func init() {
	stores.Register("file",
		func(url string) (stores.Store, error) { return New(strings.TrimPrefix(url, "file:")) })
}

// New returns the store in the directory at path, which [stores.Ensure] creates if it does not
// exist. New does not access the directory. The error wraps [lease.ErrInvalidRequest]. The store
// may be used by many goroutines and processes at once.
func New(path string) (stores.Store, error) {
	o, err := newObjects(path)
	if err != nil {
		return nil, err
	}
	return stores.New(o, driver.Layout{Name: "filestore: " + path, BlocksPerPage: blocksPerPage})
}

func newObjects(path string) (*objects, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("filestore: %w: the path is empty or contains a zero byte",
			lease.ErrInvalidRequest)
	}
	return &objects{path: path, turn: make(chan struct{}, 1), disk: system}, nil
}

// foreign returns an error if a directory without a configuration cannot take a store, because it
// has other files. A file system's own lost+found is allowed.
func foreign(files []fs.DirEntry) error {
	other := ""
	for _, f := range files {
		switch name := f.Name(); {
		case name == "config":
			return nil
		case object(name) && name != "lost+found" && !strings.HasPrefix(name, "page-"):
			other = name
		}
	}
	if other != "" {
		return fmt.Errorf("%w: the directory has other files, such as %s, and no lease store; "+
			"choose an empty one", lease.ErrSchemaVersion, other)
	}
	return nil
}

// object reports whether a file is an object: their names have no dot, unlike those of other files
// of the store, except the secret's.
func object(name string) bool { return name != secretName && !strings.Contains(name, ".") }
