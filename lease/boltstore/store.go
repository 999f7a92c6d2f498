package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/randflake"
)

// blocksPerPage fixes how many blocks of a new file are written together.
const blocksPerPage = 64

// Store is a lease file. It is safe for concurrent use, by many goroutines and
// processes; it keeps no file open between calls.
type Store struct {
	*pages.Store
	file *file
}

var _ driver.Embedded = (*Store)(nil)

const scheme = "bolt"

func init() {
	driver.Register(scheme, func(url string) (driver.Store, error) {
		s, err := New(strings.TrimPrefix(url, scheme+":"))
		if err != nil {
			return nil, err // and no nil pointer
		}
		return s, nil
	})
}

// New returns the store of the file at path. It does not access the file. The error wraps
// [lease.ErrInvalidRequest].
func New(path string, opts ...Option) (*Store, error) {
	cfg, err := newConfig(opts)
	if err == nil && path == "" {
		err = fmt.Errorf("%w: the path is empty", lease.ErrInvalidRequest)
	}
	if err != nil {
		return nil, fmt.Errorf("boltstore: %w", err)
	}
	s := &Store{file: newFile(path, cfg)}
	s.Store, err = pages.New(s.file, pages.Layout{Name: "boltstore: " + path, BlocksPerPage: blocksPerPage})
	return s, err
}

// Open returns the store of the file at path. If there is no file, it creates one, for every node
// and leases of up to [lease.DefaultTTL], but not the directory.
//
// Errors: [ErrCorrupt], [ErrLocked], [lease.ErrSchemaVersion], [lease.ErrInvalidRequest] for
// invalid options, and those of the file system.
func Open(path string, opts ...Option) (*Store, error) {
	s, err := New(path, opts...)
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
func (s *Store) Create(ctx context.Context, d lease.Description) error {
	if err := driver.CheckDescription(d); err != nil {
		return fmt.Errorf("boltstore: %w", err)
	}
	err := s.file.fill(ctx, d)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the directory %s does not exist; create it, on a local disk that all processes of the host see: %w",
			filepath.Dir(s.file.path), err)
	}
	if err != nil {
		return fmt.Errorf("boltstore: %s: create: %w", s.file.path, err)
	}
	return nil
}

// Codec returns the codec of the file's own secret. Errors: [lease.ErrNoStore], [lease.ErrReplaced].
func (s *Store) Codec(ctx context.Context) (*randflake.Codec, error) {
	d, err := s.Describe(ctx) // from now on another file is refused
	if err != nil {
		return nil, err
	}
	secret, err := s.file.secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("boltstore: %s: %w", s.file.path, err)
	}
	codec, err := randflake.NewCodec(secret)
	if err == nil && !slices.Contains(d.Secrets, lease.Fingerprint(codec, d.ID)) {
		err = fmt.Errorf("boltstore: %s: %w", s.file.path, lease.ErrReplaced)
	}
	return codec, err
}

// Restored must be called after this process was restored from a snapshot, before
// [lease.Keeper.Restored]: every later call returns [ErrCopied], because another
// machine may have a copy of the file.
func (s *Store) Restored() { s.file.copied.Store(true) }
