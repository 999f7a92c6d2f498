package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// blocksPerPage makes 16 files of 16384 blocks: each is synced when a history is begun, and only
// blocks that were granted take room.
const blocksPerPage = 1024

func init() { stores.Register("file", openURL) }

// openURL opens the store at file: and a path.
func openURL(url string) (stores.Store, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(url, "file:"), "//") // and no host
	if !filepath.IsAbs(path) || strings.ContainsAny(path, "?#") {
		return nil, &lease.Error{
			Err: errors.New("filestore: want file: and the whole path of a directory"),
			Fix: "write the whole path after file:, without parameters: only shells replace ~ " +
				"and $NAME"}
	}
	return New(path)
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
	if path == "" {
		return nil, driver.Invalid("filestore: the path is empty")
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
