package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// blocksPerPage fixes how many blocks of a new file are written together.
const blocksPerPage = 64

// store is a lease file. It keeps no file open between calls.
type store struct {
	driver.Store // on the pages of file
	file         *file
}

var _ driver.Embedded = (*store)(nil)

func init() {
	driver.Register("bolt", func(url string) (driver.Store, error) { return New(strings.TrimPrefix(url, "bolt:")) })
}

// New returns the store of the file at path. It does not access the file. The error wraps
// [lease.ErrInvalidRequest]. The store may be used by many goroutines and processes at once.
func New(path string) (driver.Embedded, error) {
	if path == "" {
		return nil, fmt.Errorf("boltstore: %w: the path is empty", lease.ErrInvalidRequest)
	}
	f := &file{path: path, timeout: lockTimeout, machine: restores, life: restores(), turn: make(chan struct{}, 1)}
	blocks, err := driver.New(f, driver.Layout{Name: "boltstore: " + path, BlocksPerPage: blocksPerPage})
	if err != nil {
		return nil, err
	}
	return &store{Store: blocks, file: f}, nil
}

// Open returns the store of the file at path. If there is no file, it creates one, for every node
// and leases of up to [lease.DefaultTTL], but not the directory.
//
// Errors: [ErrCorrupt], [ErrLocked], [lease.ErrSchemaVersion], [lease.ErrInvalidRequest], and those of
// the file system.
func Open(path string) (driver.Embedded, error) {
	s, err := New(path)
	if err != nil {
		return nil, err
	}
	if _, err := driver.Ensure(context.Background(), s, lease.DefaultTTL); err != nil {
		return nil, err
	}
	return s, nil
}

// Create implements [lease.Admin]. It creates the file, with a new secret of its own, but not the
// directory.
func (s *store) Create(ctx context.Context, d lease.Description) error {
	err := driver.CheckDescription(d)
	if err == nil {
		err = s.file.fill(ctx, d)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the directory %s does not exist; create it, on a local disk that all processes of the host see: %w",
			filepath.Dir(s.file.path), err)
	}
	if err != nil {
		return fmt.Errorf("boltstore: %s: create: %w", s.file.path, err)
	}
	return nil
}

// Codec implements [driver.Embedded]. Errors: [lease.ErrNoStore], [lease.ErrReplaced].
func (s *store) Codec(ctx context.Context) (*randflake.Codec, error) {
	d, err := s.Describe(ctx) // from now on another file is refused
	if err != nil {
		return nil, err
	}
	var codec *randflake.Codec
	err = s.file.transact(ctx, read, func(tx *bbolt.Tx) error {
		codec, err = codecOf(tx)
		return err
	})
	if missing(err) {
		err = lease.ErrNoStore
	} else if err == nil && !slices.Contains(d.Secrets, lease.Fingerprint(codec, d.ID)) {
		err = lease.ErrReplaced
	}
	if err != nil {
		return nil, fmt.Errorf("boltstore: %s: %w", s.file.path, err)
	}
	return codec, nil
}

// OnRestore implements [driver.Embedded]: every later call returns [ErrCopied].
func (s *store) OnRestore() { s.file.copied.Store(true) }
