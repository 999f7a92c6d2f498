package filestore

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

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

func init() {
	stores.Register("file",
		func(url string) (stores.Store, error) { return New(strings.TrimPrefix(url, "file:")) })
}

// New returns the store in the directory at path, which [stores.EnsureSecrets] creates if it does
// not exist. New does not access the directory. The error wraps [lease.ErrInvalidRequest]. The
// store may be used by many goroutines and processes at once.
func New(path string) (stores.Store, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("filestore: %w: the path is empty or contains a zero byte",
			lease.ErrInvalidRequest)
	}
	o := &objects{path: path, machine: restores, life: restores(), turn: make(chan struct{}, 1),
		disk: system}
	s, err := stores.New(o, driver.Layout{Name: "filestore: " + path, BlocksPerPage: blocksPerPage})
	if err != nil {
		return nil, err
	}
	return &store{Store: s, objects: o}, nil
}

// secretOf returns the name of the file with the secret of the store with an ID. A store with
// another ID never gets its secret, even if all other files were deleted.
func secretOf(id string) string { return id + ".secret" }

// Create implements [stores.Store]. It creates the directory with a new secret, but not its parent.
func (s *store) Create(ctx context.Context, d lease.Description) error {
	_, err := s.Describe(ctx)
	if err != nil && !errors.Is(err, lease.ErrNoStore) {
		return err // without a secret, such as that the store is closed
	}
	if d, err = stores.NewDescription(d); err != nil {
		return err
	}
	return s.introduce(ctx, d.ID, s.objects.create,
		func(dir *directory) (older string, err error) {
			files, err := fs.ReadDir(dir.root.FS(), ".")
			return "", cmp.Or(err, foreign(files))
		},
		func(fingerprint string) error {
			d.Secrets = []string{fingerprint}
			return s.Store.Create(ctx, d)
		})
}

// Replace implements [stores.Store]. It generates the new ID and secret itself. A replacement that
// was interrupted gets others when the call is repeated: the directory may have been restored to
// that moment, and the secret that it then had may have been in use since.
func (s *store) Replace(ctx context.Context, old, _, _ string) error {
	now, err := s.Describe(ctx)
	interrupted := errors.Is(err, lease.ErrReplacing)
	if now.ID == "" || now.Replaced == old && !interrupted {
		return err
	}
	id := lease.NewNonce()
	return s.introduce(ctx, id, s.objects.open,
		func(d *directory) (string, error) {
			if _, err := d.root.Stat(secretOf(old)); err == nil && interrupted {
				old = now.ID
			}
			older, err := d.root.ReadFile(secretOf(old))
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return string(older), err
		},
		func(fingerprint string) error { return s.Store.Replace(ctx, old, id, fingerprint) })
}

// introduce draws the secret of the store with an ID, above the older ones, and calls use with its
// fingerprint. If the store refuses the ID, because another call was first or it is another store,
// the secret is removed.
func (s *store) introduce(ctx context.Context, id string, open func() (*os.Root, error),
	older func(*directory) (string, error), use func(fingerprint string) error) error {
	k, err := locked(ctx, s.objects, open, func(d *directory) (*randflake.Keyring, error) {
		text, err := older(d)
		if err != nil {
			return nil, err
		}
		return d.draw(id, text)
	})
	if err != nil {
		return fmt.Errorf("filestore: %s: draw a secret: %w", s.objects.path, err)
	}
	err = use(lease.Description{ID: id}.Fingerprint(k.Codec()))
	if errors.Is(err, lease.ErrExists) || errors.Is(err, lease.ErrReplaced) {
		_, failed := locked(ctx, s.objects, s.objects.open,
			func(d *directory) (none struct{}, err error) {
				return none, d.root.Remove(secretOf(id))
			})
		err = errors.Join(err, failed)
	}
	return err
}

// draw returns the secrets of the store with an ID. If its file does not exist, draw generates a
// secret and writes it above the older ones.
func (d *directory) draw(id, older string) (*randflake.Keyring, error) {
	k, err := d.secrets(id)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	var secret [16]byte
	entropy.Read(secret[:])
	text := fmt.Sprintf("# the secret of the lease store %s in this directory\n%s\n%s", id,
		hex.EncodeToString(secret[:]), older)
	if err := d.replace(secretOf(id), []byte(text)); err != nil {
		return nil, err
	}
	return d.secrets(id)
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
		return fmt.Errorf("%w: %w: its pages are here, such as %s, but the file \"config\" is gone",
			lease.ErrExists, driver.ErrEdited, page)
	case other != "":
		return fmt.Errorf("%w: the directory has other files, such as %s, and no lease store; "+
			"choose an empty one", lease.ErrSchemaVersion, other)
	}
	return nil
}

// secrets returns the secrets of the store with an ID, from their file.
func (d *directory) secrets(id string) (*randflake.Keyring, error) {
	text, err := d.root.ReadFile(secretOf(id))
	if err != nil {
		return nil, err
	}
	k, err := randflake.ParseKeyring(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", driver.ErrEdited, secretOf(id), err)
	}
	return k, d.disk.syncNames(d.root, secretOf(id))
}

// KeepsSecret implements [stores.Store].
func (s *store) KeepsSecret() bool { return true }

// Secrets implements [stores.Store].
func (s *store) Secrets(ctx context.Context) (*randflake.Keyring, error) {
	about, err := s.Describe(ctx)
	if err != nil {
		return nil, err
	}
	k, err := locked(ctx, s.objects, s.objects.open,
		func(d *directory) (*randflake.Keyring, error) { return d.secrets(about.ID) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = &lease.Error{
			Err: fmt.Errorf("%w: the file %s is gone", driver.ErrEdited, secretOf(about.ID)),
			Fix: "put the file back; if it is lost, stop the processes, and give the store a new " +
				"secret: traceflake lease secret replace",
		}
	case err == nil && !slices.Contains(about.Secrets, about.Fingerprint(k.Codec())):
		err = fmt.Errorf("%w: %s has another secret", driver.ErrEdited, secretOf(about.ID))
	}
	if err != nil {
		return nil, fmt.Errorf("filestore: %s: %w", s.objects.path, err)
	}
	return k, nil
}

// Objects returns the objects in which the store keeps leases, for package leasetest.
func (s *store) Objects() driver.Objects { return s.objects }

// OnRestore implements [stores.Store]: every later call returns [ErrCopied].
func (s *store) OnRestore() { s.objects.copied.Store(true) }
