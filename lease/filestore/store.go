package filestore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// blocksPerPage makes 16 files of 16384 blocks: each is synced when the directory is created, and
// only blocks that were granted take room.
const blocksPerPage = 1024

// store is a directory with leases. Nothing is open between calls.
type store struct {
	stores.Store // on the objects
	objects      *objects
}

var _ stores.Embedded = (*store)(nil)

func init() {
	stores.Register("file",
		func(url string) (stores.Store, error) { return New(strings.TrimPrefix(url, "file:")) })
}

// New returns the store in the directory at path, which [stores.Embedded.Ensure] creates if it does
// not exist. New does not access the directory. The error wraps [lease.ErrInvalidRequest]. The
// store may be used by many goroutines and processes at once.
func New(path string) (stores.Embedded, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("filestore: %w: the path is empty or contains a zero byte",
			lease.ErrInvalidRequest)
	}
	o := &objects{path: path, timeout: lockTimeout, machine: restores, life: restores(),
		turn: make(chan struct{}, 1), disk: system}
	s, err := stores.New(o, driver.Layout{Name: "filestore: " + path, BlocksPerPage: blocksPerPage})
	if err != nil {
		return nil, err
	}
	return &store{Store: s, objects: o}, nil
}

// Ensure implements [stores.Embedded]. It creates the directory, but not its parent.
func (s *store) Ensure(ctx context.Context) (_ *randflake.Codec, err error) {
	for range 3 { // another process may create it first, and end before it is complete
		var d lease.Description
		if d, err = s.Describe(ctx); err == nil {
			break
		}
		if errors.Is(err, lease.ErrNoStore) {
			if d.ID == "" { // otherwise another process has begun
				d = lease.Description{Created: time.Now(), LongestTTL: lease.MaxTTL}
			}
			err = s.Create(ctx, d)
		}
		if err != nil && !errors.Is(err, lease.ErrExists) {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	return s.Codec(ctx)
}

// secretOf returns the name of the file with the secret of the store with an ID. A store with
// another ID never gets its secret, even if all other files were deleted.
func secretOf(id string) string { return id + ".secret" }

// Create implements [stores.Store]. It creates the directory with a new secret, but not its parent.
func (s *store) Create(ctx context.Context, d lease.Description) error {
	d, err := stores.NewDescription(d)
	if err != nil {
		return fmt.Errorf("filestore: %s: create: %w", s.objects.path, err)
	}
	codec, err := locked(ctx, s.objects, s.objects.create,
		func(dir *directory) (*randflake.Codec, error) {
			files, err := fs.ReadDir(dir.root.FS(), ".")
			if err == nil {
				err = foreign(files)
			}
			if err != nil {
				return nil, err
			}
			codec, err := dir.codec(d.ID)
			if errors.Is(err, fs.ErrNotExist) {
				var secret [16]byte
				entropy.Read(secret[:])
				text := fmt.Sprintf("# the secret of the lease store %s in this directory\n%s\n",
					d.ID, hex.EncodeToString(secret[:]))
				if err = dir.replace(secretOf(d.ID), []byte(text)); err == nil {
					codec, err = dir.codec(d.ID)
				}
			}
			return codec, err
		})
	if err != nil {
		return fmt.Errorf("filestore: %s: create: %w", s.objects.path, err)
	}
	d.Secrets = []string{d.Fingerprint(codec)}
	err = s.Store.Create(ctx, d)
	if errors.Is(err, lease.ErrExists) {
		_, unused := locked(ctx, s.objects, s.objects.open,
			func(dir *directory) (none struct{}, err error) {
				return none, dir.root.Remove(secretOf(d.ID))
			})
		err = errors.Join(err, unused)
	}
	return err
}

// foreign returns an error if a directory without a configuration cannot take a store: it has other
// files, or pages of a store that lost its configuration, which is written first. A file system's
// own lost+found is allowed.
func foreign(files []fs.DirEntry) error {
	other, page := "", ""
	for _, f := range files {
		switch name := f.Name(); {
		case name == "config":
			return nil
		case strings.HasPrefix(name, "page-"):
			page = name
		case !strings.Contains(name, ".") && name != "lost+found":
			other = name
		}
	}
	switch {
	case page != "":
		return fmt.Errorf("%w: its pages are here, such as %s, but the file \"config\" is gone; "+
			"put it back, then run `traceflake lease raise`, or choose another directory",
			lease.ErrExists, page)
	case other != "":
		return fmt.Errorf("%w: the directory has other files, such as %s, and no lease store; "+
			"choose an empty one", lease.ErrSchemaVersion, other)
	}
	return nil
}

// codec returns the codec of the store with an ID, from its secret's file.
func (d *directory) codec(id string) (*randflake.Codec, error) {
	text, err := d.root.ReadFile(secretOf(id))
	if err != nil {
		return nil, err
	}
	k, err := randflake.ParseKeyring(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", driver.ErrEdited, secretOf(id), err)
	}
	return k.Codec(), d.disk.syncNames(d.root, secretOf(id))
}

// Codec implements [stores.Embedded]. Errors: [lease.ErrNoStore], [lease.ErrReplaced].
func (s *store) Codec(ctx context.Context) (*randflake.Codec, error) {
	about, err := s.Describe(ctx) // from now on another store is refused
	if err != nil {
		return nil, err
	}
	codec, err := locked(ctx, s.objects, s.objects.open,
		func(d *directory) (*randflake.Codec, error) { return d.codec(about.ID) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: the file %s is gone", driver.ErrEdited, secretOf(about.ID))
	case err == nil && !slices.Contains(about.Secrets, about.Fingerprint(codec)):
		err = fmt.Errorf("%w: %s has another secret", driver.ErrEdited, secretOf(about.ID))
	}
	if err != nil {
		return nil, fmt.Errorf("filestore: %s: %w", s.objects.path, err)
	}
	return codec, nil
}

// Objects returns the objects in which the store keeps leases, for package leasetest.
func (s *store) Objects() driver.Objects { return s.objects }

// OnRestore implements [stores.Embedded]: every later call returns [ErrCopied].
func (s *store) OnRestore() { s.objects.copied.Store(true) }
