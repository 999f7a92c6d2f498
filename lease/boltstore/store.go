package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Store is a file of leases. It is safe for concurrent use, by many goroutines
// and processes; it keeps no file open between calls.
type Store struct {
	path   string
	cfg    config
	nodes  driver.NodeRange
	turn   chan struct{} // one transaction at a time in this process
	life   uint64        // the machine's, when the file was opened
	id     []byte
	secret []byte
	codec  *randflake.Codec
}

var _ interface {
	lease.Store
	lease.Admin
	driver.CodecStore
} = (*Store)(nil)

// Open creates the file if it is missing, but not its directory, and checks the
// file. A file of an older version is migrated to the current schema. Errors:
// [ErrCorrupt], [ErrLocked], [lease.ErrBlockSize], [lease.ErrSchemaVersion],
// [lease.ErrInvalidRequest] for invalid options, and those of the file system.
func Open(path string, opts ...Option) (*Store, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("boltstore: %w", err)
	}
	s := &Store{path: path, cfg: cfg, turn: make(chan struct{}, 1), life: cfg.machine()}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if _, err := cfg.nodes.FitNew(); err != nil { // before there is a file
			return nil, fmt.Errorf("boltstore: %w", err)
		}
	}
	if dir := filepath.Dir(path); !isDir(dir) {
		return nil, s.wrap("open", fmt.Errorf("the folder %s is not there; make it, on a local disk that "+
			"all processes of the host see: %w", dir, fs.ErrNotExist))
	}
	// A valid file is only read, so that listing leases writes nothing.
	err = s.transact(context.Background(), read, s.prepare)
	if err != nil && !errors.Is(err, ErrLocked) {
		err = s.transact(context.Background(), create, s.prepare)
	}
	if err != nil {
		return nil, s.wrap("open", err)
	}
	if s.codec, err = randflake.NewCodec(s.secret); err != nil {
		return nil, s.wrap("open", err)
	}
	return s, nil
}

// Codec returns the codec of the file's own secret.
func (s *Store) Codec() *randflake.Codec { return s.codec }

// Acquire implements [lease.Store]. It takes the free block with the lowest
// nodes, for at most the longest TTL.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	r, err := s.limit(r)
	if err != nil {
		return lease.Grant{}, s.wrap("acquire", err)
	}
	var g lease.Grant
	err = s.update(ctx, func(tx *bbolt.Tx) error {
		b, err := s.find(tx, r)
		if err != nil {
			return err
		}
		if b.Nonce != r.Nonce {
			if b, err = b.Acquire(r); err != nil {
				return err
			}
			err = put(tx, b)
		}
		g = b.Grant()
		return err
	})
	return result(g, s.wrap("acquire", err))
}

// limit checks a request and shortens it: no grant ends later than the longest TTL
// from now, which is how long the next file waits if this one is lost.
func (s *Store) limit(r lease.Request) (lease.Request, error) {
	now := s.cfg.now()
	if err := driver.CheckRequest(r, now); err != nil {
		return r, err
	}
	ahead := max(r.Now.Sub(now), 0)
	if r.TTL = min(r.TTL, s.cfg.maxTTL-ahead); r.TTL < lease.MinTTL {
		return r, fmt.Errorf("%w by %s, and the longest TTL is %s", lease.ErrClockAhead, ahead, s.cfg.maxTTL)
	}
	return r, nil
}

// find returns the block that has the request's nonce, or otherwise a free
// one.
func (s *Store) find(tx *bbolt.Tx, r lease.Request) (driver.Block, error) {
	var free, soonest driver.Block
	found := false
	blocks, written := s.nodes.Blocks(), 0
	err := s.each(tx, func(i int, b driver.Block) error {
		switch {
		case b.Nonce == r.Nonce:
			free, found = b, true
			return errStop
		case !found && i > written: // there is a gap before it
			free, found = s.nodes.Block(written), true
		case !found && b.Free(r.Now):
			free, found = b, true
		case soonest.Nodes == 0 || b.GrantedUntil.Before(soonest.GrantedUntil):
			soonest = b
		}
		written = i + 1
		return nil
	})
	switch {
	case err != nil && err != errStop: //nolint:errorlint // errStop is never wrapped
		return free, err
	case found:
		return free, nil
	case written < blocks:
		return s.nodes.Block(written), nil
	}
	return free, fmt.Errorf("%w: the first of %d is free at %s",
		lease.ErrNoFreeNode, blocks, soonest.GrantedUntil.Format(time.RFC3339))
}

// Renew implements [lease.Store]. The end is at most the longest TTL from now.
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	r, err := s.limit(r)
	if err != nil {
		return lease.Grant{}, s.wrap("renew", err)
	}
	return s.change(ctx, "renew", g.Node, func(b driver.Block) (driver.Block, error) { return b.Renew(g, r) })
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := s.change(ctx, "release", g.Node, func(b driver.Block) (driver.Block, error) { return b.Release(g, nonce, unused) })
	return err
}

// Get implements [lease.Store].
func (s *Store) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	var b driver.Block
	err := s.view(ctx, func(tx *bbolt.Tx) (err error) {
		b, err = s.block(tx, node)
		return err
	})
	return result(b.Grant(), s.wrap("get", err))
}

// List implements [lease.Admin]: the blocks in the store's node range.
func (s *Store) List(ctx context.Context) ([]lease.Block, error) {
	var list []lease.Block
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		return s.each(tx, func(_ int, b driver.Block) error {
			list = append(list, lease.Block(b))
			return nil
		})
	})
	if err != nil {
		return nil, s.wrap("list", err)
	}
	return list, nil
}

// Raise implements [lease.Admin]. All blocks are raised, or none.
func (s *Store) Raise(ctx context.Context, until time.Time) error {
	if err := driver.CheckRaise(until); err != nil {
		return s.wrap("raise", err)
	}
	return s.wrap("raise", s.update(ctx, func(tx *bbolt.Tx) error { return s.raise(tx, until) }))
}

// Time implements [lease.Admin]: a file has no clock of its own.
func (s *Store) Time(context.Context) (time.Time, error) { return time.Time{}, nil }

func (s *Store) raise(tx *bbolt.Tx, until time.Time) error {
	for i := range s.nodes.Blocks() {
		b, err := s.block(tx, s.nodes.Block(i).Node)
		if err != nil {
			return err
		}
		if err := put(tx, b.Raise(until)); err != nil {
			return err
		}
	}
	return nil
}

// change replaces the state of a block with its next one.
func (s *Store) change(ctx context.Context, what string, node uint32, rule func(driver.Block) (driver.Block, error)) (lease.Grant, error) {
	var after driver.Block
	err := s.update(ctx, func(tx *bbolt.Tx) error {
		before, err := s.block(tx, node)
		if err != nil {
			return err
		}
		if after, err = rule(before); err != nil {
			return err
		}
		return put(tx, after)
	})
	return result(after.Grant(), s.wrap(what, err))
}

func (s *Store) update(ctx context.Context, f func(*bbolt.Tx) error) error {
	return s.transact(ctx, write, func(tx *bbolt.Tx) error {
		if err := s.same(tx); err != nil {
			return err
		}
		return f(tx)
	})
}

func (s *Store) view(ctx context.Context, f func(*bbolt.Tx) error) error {
	return s.transact(ctx, read, func(tx *bbolt.Tx) error {
		if err := s.same(tx); err != nil {
			return err
		}
		return f(tx)
	})
}

// block reads the block that starts at node.
func (s *Store) block(tx *bbolt.Tx, node uint32) (driver.Block, error) {
	i, err := s.nodes.Index(node)
	if err != nil {
		return driver.Block{}, err
	}
	return decode(s.nodes.Block(i), tx.Bucket(blocksBucket).Get(keyOf(node)))
}

func put(tx *bbolt.Tx, b driver.Block) error {
	v, err := encode(b)
	if err != nil {
		return err
	}
	return tx.Bucket(blocksBucket).Put(keyOf(b.Node), v)
}

var errStop = fmt.Errorf("stop")

// each calls f for every written block of the range, in node order.
func (s *Store) each(tx *bbolt.Tx, f func(i int, b driver.Block) error) error {
	c := tx.Bucket(blocksBucket).Cursor()
	for k, v := c.Seek(keyOf(s.nodes.First)); k != nil; k, v = c.Next() {
		if len(k) != keyLen {
			return fmt.Errorf("%w: a block's key has %d bytes, want %d", ErrCorrupt, len(k), keyLen)
		}
		node := binary.BigEndian.Uint32(k)
		if node-s.nodes.First >= s.nodes.Nodes {
			return nil
		}
		i, err := s.nodes.Index(node)
		if err != nil {
			return fmt.Errorf("%w: a record for node %d, which is not the first of a block", ErrCorrupt, node)
		}
		b, err := decode(s.nodes.Block(i), v)
		if err != nil {
			return err
		}
		if err := f(i, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("boltstore: %s: %s: %w", s.path, what, err)
}

func result(g lease.Grant, err error) (lease.Grant, error) {
	if err != nil {
		return lease.Grant{}, err
	}
	return g, nil
}
