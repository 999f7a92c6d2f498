package boltstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver/pages"
)

// Errors of the file, besides lease.ErrBlockSize and lease.ErrSchemaVersion.
var (
	// ErrCorrupt is returned if the file is not a bbolt file or is damaged.
	// Restore a copy and raise it, or move it away: a new one has a new secret.
	ErrCorrupt = errors.New("boltstore: the file is damaged")
	// ErrLocked is returned if another process held the file for the whole
	// timeout.
	ErrLocked = errors.New("boltstore: the file is locked by another process")
	// ErrReplaced is returned if the file is gone or is not the one that was
	// opened. Restart the process.
	ErrReplaced = errors.New("boltstore: the file was removed or replaced")
	// ErrNewFile is returned by Acquire, with lease.ErrNoFreeNode, while a file
	// waits because a lost one may have granted its nodes: see [Open].
	ErrNewFile = errors.New("the file is new to its nodes")
	// ErrCopied is returned if this machine was restored from a snapshot since
	// Open, or [Store.Restored] was called: another machine may have a copy of the
	// file, and both would grant the same nodes. If one has, move the file away, and
	// with a fleet's secret give this host other nodes. Then start the process again.
	ErrCopied = errors.New("boltstore: the machine was restored from a snapshot, and may not be the only one with this file")
)

const (
	format    = 1
	secretLen = 16
	fileMode  = 0o600
)

// The file has one bucket: the pages, and its identity.
var (
	bucket      = []byte("traceflake")
	identityKey = []byte("identity")
)

// identity tells one file from another.
type identity struct {
	Format int    `json:"format"`
	ID     []byte `json:"id"`
	Secret []byte `json:"secret"`
}

// file is a [pages.Server] on a bbolt file, which is open and locked only during
// a call. The version of a page is its data, which never recurs.
type file struct {
	path    string
	timeout time.Duration
	machine func() uint64
	life    uint64        // the machine's, when the file was opened
	copied  atomic.Bool   // Restored was called
	turn    chan struct{} // one transaction at a time in this process
	id      []byte        // nil until the file was identified
}

func newFile(path string, cfg config) *file {
	return &file{
		path: path, timeout: cfg.timeout, machine: cfg.machine, life: cfg.machine(),
		turn: make(chan struct{}, 1),
	}
}

// Read implements [pages.Server].
func (f *file) Read(ctx context.Context, name string) (o pages.Object, err error) {
	err = f.use(ctx, read, func(tx *bbolt.Tx) error {
		o = object(tx.Bucket(bucket).Get([]byte(name)))
		return nil
	})
	return o, err
}

// Write implements [pages.Server].
func (f *file) Write(ctx context.Context, name string, data []byte, version string) (o pages.Object, err error) {
	err = f.use(ctx, write, func(tx *bbolt.Tx) error {
		all := tx.Bucket(bucket)
		if o = object(all.Get([]byte(name))); o.Version != version {
			return pages.ErrChanged
		}
		return all.Put([]byte(name), data)
	})
	if err != nil {
		return o, err
	}
	return pages.Object{Version: string(data)}, nil
}

// List implements [pages.Server].
func (f *file) List(ctx context.Context) (map[string]pages.Object, error) {
	all := map[string]pages.Object{}
	err := f.use(ctx, read, func(tx *bbolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(name, data []byte) error {
			all[string(name)] = object(data)
			return nil
		})
	})
	return all, err
}

// object copies data, which is valid during a transaction only.
func object(data []byte) pages.Object {
	return pages.Object{Data: []byte(string(data)), Version: string(data)}
}

// identify learns which file it is, and returns its secret. It makes the file if
// it may. A file that is there is only read, so that listing leases writes
// nothing.
func (f *file) identify(ctx context.Context, mayCreate bool) (secret []byte, err error) {
	var i identity
	err = f.transact(ctx, read, func(tx *bbolt.Tx) error { i, err = identityOf(tx); return err })
	if mayCreate && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEmpty)) {
		err = f.transact(ctx, create, func(tx *bbolt.Tx) error { i, err = fill(tx); return err })
	}
	if err != nil {
		return nil, err
	}
	f.id = i.ID
	return i.Secret, nil
}

// errEmpty is returned if nothing was written to the file yet.
var errEmpty = errors.New("the file is empty")

func identityOf(tx *bbolt.Tx) (i identity, err error) {
	all := tx.Bucket(bucket)
	if all == nil {
		if name, _ := tx.Cursor().First(); name != nil {
			return i, fmt.Errorf("%w: it is a bbolt file with a bucket %q, not one of leases", lease.ErrSchemaVersion, name)
		}
		return i, errEmpty
	}
	if err := json.Unmarshal(all.Get(identityKey), &i); err != nil {
		return i, fmt.Errorf("%w: its identity: %w", ErrCorrupt, err)
	}
	if i.Format != format {
		return i, fmt.Errorf("%w: %d, this library supports %d; use a newer one", lease.ErrSchemaVersion, i.Format, format)
	}
	if len(i.ID) != secretLen || len(i.Secret) != secretLen {
		return i, fmt.Errorf("%w: its id or its secret is missing", ErrCorrupt)
	}
	return i, nil
}

// fill writes an identity unless another process has done so meanwhile.
func fill(tx *bbolt.Tx) (i identity, err error) {
	if i, err = identityOf(tx); !errors.Is(err, errEmpty) {
		return i, err
	}
	i = identity{Format: format, ID: make([]byte, secretLen), Secret: make([]byte, secretLen)}
	entropy.Read(i.ID)
	entropy.Read(i.Secret)
	data, err := json.Marshal(i)
	if err != nil {
		return i, err
	}
	all, err := tx.CreateBucket(bucket)
	if err != nil {
		return i, err
	}
	return i, all.Put(identityKey, data)
}

// use is transact on the file that was identified, and on no other.
func (f *file) use(ctx context.Context, how access, do func(*bbolt.Tx) error) error {
	if f.copied.Load() || f.machine() != f.life {
		return ErrCopied
	}
	return f.transact(ctx, how, func(tx *bbolt.Tx) error {
		i, err := identityOf(tx)
		if errors.Is(err, errEmpty) || err == nil && string(i.ID) != string(f.id) {
			return ErrReplaced
		}
		if err != nil {
			return err
		}
		return do(tx)
	})
}

// access is how a transaction opens the file.
type access int

const (
	create access = iota // create it if it is missing
	write
	read
)

// transact runs do in a transaction on the file. A damaged file is an error, even
// if bbolt panics on it or faults in the mapped memory; so do must not run code
// that can panic for another reason, such as a rule or a clock.
func (f *file) transact(ctx context.Context, how access, do func(*bbolt.Tx) error) (err error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var opened *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, r)
			unlock(opened)
		}
	}()
	db, err := f.open(ctx, how, &opened)
	if err != nil {
		return f.explain(err)
	}
	if how == read {
		err = db.View(do)
	} else {
		err = db.Update(do)
	}
	return f.explain(errors.Join(err, db.Close()))
}

// open opens and locks the file that is at the path at that moment.
func (f *file) open(ctx context.Context, how access, opened **os.File) (*bbolt.DB, error) {
	for {
		timeout, late := f.timeout, fmt.Errorf("%w for %s", ErrLocked, f.timeout)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < timeout {
			timeout, late = max(time.Until(deadline), time.Nanosecond), fmt.Errorf("%w: %w", ErrLocked, context.DeadlineExceeded)
		}
		db, err := bbolt.Open(f.path, fileMode, &bbolt.Options{
			Timeout:      timeout,
			ReadOnly:     how == read,
			FreelistType: bbolt.FreelistMapType,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				if how != create {
					flag &^= os.O_CREATE
				}
				file, err := os.OpenFile(name, flag, mode)
				if err != nil {
					return nil, err
				}
				// bbolt would write into an empty file, also one that is only read: another
				// process has just created it, and is about to.
				if info, err := file.Stat(); how == read && (err != nil || info.Size() == 0) {
					return nil, errors.Join(cmp.Or(err, errEmpty), file.Close())
				}
				*opened = file
				return file, nil
			},
		})
		if errors.Is(err, bolterrors.ErrTimeout) {
			return nil, late
		}
		if err != nil {
			return nil, err
		}
		// While we waited for the lock the file may have been replaced.
		locked, err := (*opened).Stat()
		if err == nil {
			var named fs.FileInfo
			if named, err = os.Stat(f.path); err == nil && os.SameFile(locked, named) {
				return db, nil
			}
		}
		_ = db.Close()
		if err != nil {
			return nil, err
		}
	}
}

// explain maps errors of bbolt and the system to ours.
func (f *file) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrInvalidMapping):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case errors.Is(err, fs.ErrNotExist) && f.id != nil:
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	return err
}
