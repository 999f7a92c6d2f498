package boltstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
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
	// ErrCopied is returned if this machine was restored from a snapshot since
	// Open: another machine may have a copy of the file, and both would grant the
	// same nodes. If one has, move the file away, and with a fleet's secret give
	// this host other nodes. Then start the process again.
	ErrCopied = errors.New("boltstore: the machine was restored from a snapshot, and may not be the only one with this file")
)

const (
	schema    = 2
	secretLen = 16
	fileMode  = 0o600
)

var (
	metaBucket   = []byte("meta")
	rangesBucket = []byte("ranges")
	blocksBucket = []byte("blocks")

	schemaKey    = []byte("schema")
	blockSizeKey = []byte("block_size")
	idKey        = []byte("id")
	secretKey    = []byte("secret")
)

// access is how a transaction opens the file.
type access int

const (
	create access = iota // create it if it is missing
	write
	read
)

// transact runs f in a transaction on the file, which is open and locked only
// for that long. A damaged file is an error, even if bbolt panics on it or
// faults in the mapped memory.
func (s *Store) transact(ctx context.Context, how access, f func(*bbolt.Tx) error) (err error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, r)
			unlock(file)
		}
	}()
	db, err := s.open(ctx, how, &file)
	if err != nil {
		return s.explain(ctx, err)
	}
	if how == read {
		err = db.View(f)
	} else {
		err = db.Update(f)
	}
	return s.explain(ctx, errors.Join(err, db.Close()))
}

// open opens and locks the file that is at the path at that moment.
func (s *Store) open(ctx context.Context, how access, file **os.File) (*bbolt.DB, error) {
	for {
		timeout := s.cfg.timeout
		if deadline, ok := ctx.Deadline(); ok {
			timeout = min(timeout, max(time.Until(deadline), time.Nanosecond))
		}
		db, err := bbolt.Open(s.path, fileMode, &bbolt.Options{
			Timeout:      timeout,
			ReadOnly:     how == read,
			FreelistType: bbolt.FreelistMapType,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				if how != create {
					flag &^= os.O_CREATE
				}
				f, err := os.OpenFile(name, flag, mode)
				*file = f
				return f, err
			},
		})
		if err != nil {
			return nil, err
		}
		// While we waited for the lock the file may have been replaced.
		opened, err := (*file).Stat()
		if err == nil {
			var named fs.FileInfo
			if named, err = os.Stat(s.path); err == nil && os.SameFile(opened, named) {
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
func (s *Store) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolterrors.ErrTimeout):
		if ctx.Err() != nil || deadlinePassed(ctx) {
			return fmt.Errorf("%w: %w", ErrLocked, context.DeadlineExceeded)
		}
		return fmt.Errorf("%w for %s", ErrLocked, s.cfg.timeout)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrInvalidMapping):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case errors.Is(err, fs.ErrNotExist) && s.id != nil:
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	return err
}

// deadlinePassed reports whether ctx's deadline ended the wait for the lock.
func deadlinePassed(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < 100*time.Millisecond
}

// prepare makes the file ready for this configuration: it initializes a new one
// and checks an existing one.
func (s *Store) prepare(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		if name, _ := tx.Cursor().First(); name != nil {
			return fmt.Errorf("%w: it is a bbolt file with a bucket %q, not one of leases", lease.ErrSchemaVersion, name)
		}
		nodes, err := s.cfg.nodes.FitNew()
		if err != nil {
			return err
		}
		if meta, err = fill(tx, nodes.BlockSize); err != nil {
			return err
		}
	}
	if bytes.Equal(meta.Get(schemaKey), uint64Bytes(1)) {
		if err := migrate(meta); err != nil {
			return err
		}
	}
	if err := checkSchema(meta); err != nil {
		return err
	}
	nodes, err := s.cfg.nodes.Fit(uint32(min(uint64Of(meta.Get(blockSizeKey)), math.MaxUint32)))
	if err != nil {
		return err
	}
	s.nodes = nodes
	id, secret := meta.Get(idKey), meta.Get(secretKey)
	if len(id) != secretLen || len(secret) != secretLen || tx.Bucket(blocksBucket) == nil || tx.Bucket(rangesBucket) == nil {
		return fmt.Errorf("%w: its id, its secret or a bucket is missing", ErrCorrupt)
	}
	s.id, s.secret = bytes.Clone(id), bytes.Clone(secret)
	return s.wait(tx)
}

// migrate brings a file of schema 1 to the current schema. Its records are
// valid as blocks without an owner. Its processes renew without a nonce for
// each write: they are refused from now on, since they identify the file by its
// id.
func migrate(meta *bbolt.Bucket) error {
	if err := meta.Put(idKey, random()); err != nil {
		return err
	}
	return meta.Put(schemaKey, uint64Bytes(schema))
}

func checkSchema(meta *bbolt.Bucket) error {
	if got := meta.Get(schemaKey); !bytes.Equal(got, uint64Bytes(schema)) {
		return fmt.Errorf("%w: %d, this library supports %d; use a newer one", lease.ErrSchemaVersion, uint64Of(got), schema)
	}
	return nil
}

func random() []byte {
	b := make([]byte, secretLen)
	_, _ = rand.Read(b) // never fails
	return b
}

func fill(tx *bbolt.Tx, blockSize uint32) (*bbolt.Bucket, error) {
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return nil, err
	}
	for _, kv := range [][2][]byte{
		{schemaKey, uint64Bytes(schema)},
		{blockSizeKey, uint64Bytes(uint64(blockSize))},
		{idKey, random()},
		{secretKey, random()},
	} {
		if err := meta.Put(kv[0], kv[1]); err != nil {
			return nil, err
		}
	}
	for _, name := range [][]byte{rangesBucket, blocksBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return nil, err
		}
	}
	return meta, nil
}

// wait reserves a host's share of a fleet's nodes for one longest TTL if the
// file has not been used with them: a lost file may have granted them.
func (s *Store) wait(tx *bbolt.Tx) error {
	if !s.cfg.share {
		return nil
	}
	key := append(keyOf(s.nodes.First), keyOf(s.nodes.Nodes)...)
	ranges := tx.Bucket(rangesBucket)
	if ranges.Get(key) != nil {
		return nil
	}
	now := s.cfg.now()
	if err := driver.CheckRaise(now.Add(s.cfg.maxTTL)); err != nil {
		return err
	}
	if err := ranges.Put(key, uint64Bytes(uint64(now.Unix()))); err != nil {
		return err
	}
	return s.raise(tx, now.Add(s.cfg.maxTTL))
}

// same refuses a file that is not the one that Open saw, or one of several.
func (s *Store) same(tx *bbolt.Tx) error {
	if s.cfg.machine() != s.life {
		return ErrCopied
	}
	meta := tx.Bucket(metaBucket)
	if meta == nil || !bytes.Equal(meta.Get(idKey), s.id) {
		return ErrReplaced
	}
	if err := checkSchema(meta); err != nil {
		return err
	}
	if tx.Bucket(blocksBucket) == nil {
		return fmt.Errorf("%w: a bucket is missing", ErrCorrupt)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func uint64Bytes(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func uint64Of(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}
