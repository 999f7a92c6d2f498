package boltstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Errors of the file, besides those of package lease.
var (
	// ErrCorrupt is returned if the file is not a bbolt file or is damaged.
	// Restore a copy and raise it, or move it away: a new one has a new secret.
	ErrCorrupt = errors.New("boltstore: the file is damaged")
	// ErrLocked is returned if another process held the file for 2 s.
	ErrLocked = errors.New("boltstore: the file is locked by another process")
	// ErrCopied is returned if this machine was restored from a snapshot since
	// New, or OnRestore was called: another machine may have a copy of the
	// file, and both would grant the same nodes. If one has, move the file away, then
	// start the process again: the next file has another secret.
	ErrCopied = errors.New("boltstore: the machine was restored from a snapshot, and may not be the only one with this file")
)

const (
	fileMode    = 0o600
	lockTimeout = 2 * time.Second
)

// The file has one bucket: the pages, and the secret.
var (
	bucket    = []byte("traceflake")
	secretKey = []byte("secret")
)

// file is a [driver.Objects] on a bbolt file, which is open and locked only during
// a call. The version of a page is its data, which never recurs.
type file struct {
	path    string
	timeout time.Duration
	machine func() uint64 // restores
	life    uint64        // the machine's, when the file was opened
	copied  atomic.Bool   // OnRestore was called
	turn    chan struct{} // one transaction at a time in this process
}

// restores changes when this machine is restored from a snapshot. Where nothing but
// the disruption marker tells, it is constant: a live migration copies no file.
func restores() uint64 {
	machine := vmclock.System()
	generation := machine.Generation()
	if source, _ := machine.Status(); source != vmclock.GenerationCounter {
		return 0
	}
	return generation
}

// Read implements [driver.Objects].
func (f *file) Read(ctx context.Context, name string) (o driver.Object, err error) {
	err = f.use(ctx, read, func(b *objects) (err error) { o, err = b.Read(ctx, name); return err })
	o.Time = time.Now().Truncate(time.Second)
	return o, err
}

// Write implements [driver.Objects].
func (f *file) Write(ctx context.Context, name string, data []byte, version string) (o driver.Object, err error) {
	err = f.use(ctx, write, func(b *objects) (err error) { o, err = b.Write(ctx, name, data, version); return err })
	return o, err
}

// List implements [driver.Objects].
func (f *file) List(ctx context.Context) (all map[string]driver.Object, err error) {
	err = f.use(ctx, read, func(b *objects) (err error) { all, err = b.List(ctx); return err })
	return all, err
}

// objects is a [driver.Objects] in one transaction, which serves one request at a time.
type objects struct {
	*bbolt.Bucket
	mu sync.Mutex
}

func (b *objects) Read(_ context.Context, name string) (driver.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return object(b.Get([]byte(name))), nil
}

func (b *objects) Write(_ context.Context, name string, data []byte, version string) (driver.Object, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := object(b.Get([]byte(name))); o.Version != version {
		return o, driver.ErrChanged
	}
	return driver.Object{Version: string(data)}, b.Put([]byte(name), data)
}

func (b *objects) List(context.Context) (map[string]driver.Object, error) {
	all := map[string]driver.Object{}
	return all, b.ForEach(func(name, data []byte) error {
		all[string(name)] = object(data)
		return nil
	})
}

// object copies data, which is valid during a transaction only.
func object(data []byte) driver.Object {
	return driver.Object{Data: []byte(string(data)), Version: string(data)}
}

// errEmpty is returned if nothing was written to the file yet.
var errEmpty = errors.New("the file is empty")

// codecOf returns the codec of the file's secret, which every file has that was created.
func codecOf(tx *bbolt.Tx) (*randflake.Codec, error) {
	all := tx.Bucket(bucket)
	if all == nil {
		if name, _ := tx.Cursor().First(); name != nil {
			return nil, fmt.Errorf("%w: it is a bbolt file with a bucket %q, not a lease file", lease.ErrSchemaVersion, name)
		}
		return nil, errEmpty
	}
	codec, err := randflake.NewCodec(all.Get(secretKey))
	if err != nil {
		return nil, fmt.Errorf("%w: its secret is missing", ErrCorrupt)
	}
	return codec, nil
}

// fill writes a new secret and every page, in one transaction.
func (f *file) fill(ctx context.Context, d lease.Description) error {
	return f.transact(ctx, createFile, func(tx *bbolt.Tx) error {
		codec, err := codecOf(tx)
		if errors.Is(err, errEmpty) {
			var secret [16]byte
			entropy.Read(secret[:])
			var all *bbolt.Bucket
			if all, err = tx.CreateBucket(bucket); err == nil {
				err = all.Put(secretKey, secret[:])
			}
			if err == nil {
				codec, err = codecOf(tx)
			}
		}
		if err != nil {
			return err
		}
		d.Secrets = []string{lease.Fingerprint(codec, d.ID)}
		s, err := driver.New(&objects{Bucket: tx.Bucket(bucket)}, driver.Layout{Name: "file", BlocksPerPage: blocksPerPage})
		if err != nil {
			return err
		}
		return s.Create(ctx, d)
	})
}

// missing reports whether there is no store at the path.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEmpty) }

// use runs do in a transaction on the file, if there is one.
func (f *file) use(ctx context.Context, how access, do func(*objects) error) error {
	if f.copied.Load() || f.machine() != f.life {
		return ErrCopied
	}
	err := f.transact(ctx, how, func(tx *bbolt.Tx) error {
		if _, err := codecOf(tx); err != nil {
			return err
		}
		return do(&objects{Bucket: tx.Bucket(bucket)})
	})
	switch {
	case missing(err) && how == write:
		return driver.ErrChanged
	case missing(err):
		return nil
	}
	return err
}

// access is how a transaction opens the file.
type access int

const (
	createFile access = iota // create it if it is missing
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
		return explain(err)
	}
	if how == read {
		err = db.View(do)
	} else {
		err = db.Update(do)
	}
	return explain(errors.Join(err, db.Close()))
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
				if how != createFile {
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
		named, gone := os.Stat(f.path)
		if err = cmp.Or(err, gone); err == nil && os.SameFile(locked, named) {
			return db, nil
		}
		_ = db.Close()
		if err != nil {
			return nil, err
		}
	}
}

// explain maps errors of bbolt to ours.
func explain(err error) error {
	for _, damaged := range []error{
		bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch, bolterrors.ErrInvalidMapping,
	} {
		if errors.Is(err, damaged) {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	return err
}
