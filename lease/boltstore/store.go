package boltstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

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
	file  *file
	cfg   config
	codec *randflake.Codec
	until atomic.Pointer[time.Time] // when the wait for a lost file is over, once that is known
}

var _ driver.CodecStore = (*Store)(nil)

// Open creates the file if it is missing and need not be [driver.Options.Existing],
// but not its directory, and checks the file. Zero fields of the nodes are the
// file's own: every node, in blocks of [driver.DefaultBlockSize] in a new file.
//
// Other nodes are this host's share of a fleet's nodes: with a secret that the
// fleet shares, each host needs nodes of its own. A file that is used with them
// for the first time may replace a lost one, so it grants nothing for one longest
// TTL ([ErrNewFile]), unless IDs are made with [driver.OwnSecret].
//
// Requests for longer than the longest TTL are shortened to it. All processes of
// the host must agree on it, and if a file with a share of a fleet's nodes is
// lost, the next one must use the longest TTL that was in use.
//
// Errors: [ErrCorrupt], [ErrLocked], [lease.ErrBlockSize], [lease.ErrSchemaVersion],
// [lease.ErrInvalidRequest] for invalid options, and those of the file system.
func Open(path string, use driver.Options, opts ...Option) (*Store, error) {
	s := new(Store)
	if err := s.open(path, use, opts); err != nil {
		return nil, fmt.Errorf("boltstore: %s: open: %w", path, err)
	}
	// Is it sound, and has it blocks of this size?
	if _, err := s.List(context.Background()); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) open(path string, use driver.Options, opts []Option) (err error) {
	if s.cfg, err = newConfig(use, opts); err != nil {
		return err
	}
	s.file = newFile(path, s.cfg)
	layout := pages.Layout{Name: "boltstore: " + path, BlocksPerPage: blocksPerPage}
	if s.Store, err = pages.New(s.file, layout, use.Nodes); err != nil {
		return err
	}
	if dir := filepath.Dir(path); !isDir(dir) {
		return fmt.Errorf("the folder %s is not there; make it, on a local disk that "+
			"all processes of the host see: %w", dir, fs.ErrNotExist)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !use.Existing {
		if _, err := use.Nodes.Resolve(0); err != nil { // before there is a file
			return err
		}
	}
	secret, err := s.file.identify(context.Background(), !use.Existing)
	if err != nil {
		return err
	}
	s.codec, err = randflake.NewCodec(secret)
	return err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Restored must be called after this process was restored from a snapshot, before
// [lease.Keeper.Restored]: every later call returns [ErrCopied], because another
// machine may have a copy of the file.
func (s *Store) Restored() { s.file.copied.Store(true) }

// Codec returns the codec of the file's own secret.
func (s *Store) Codec() *randflake.Codec { return s.codec }

// Acquire implements [lease.Store]. It grants at most the longest TTL.
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	fail := func(err error) (lease.Grant, error) {
		return lease.Grant{}, fmt.Errorf("boltstore: %s: acquire: %w", s.file.path, err)
	}
	r, err := s.limit(r)
	if err != nil {
		return fail(err)
	}
	until, err := s.share(ctx, s.cfg.now())
	if err != nil {
		return fail(err)
	}
	g, err := s.Store.Acquire(ctx, r)
	if errors.Is(err, lease.ErrNoFreeNode) && until.After(r.Now) {
		return fail(fmt.Errorf("%w until %s: %w, %d+%d, and another one, now lost, may have granted them "+
			"for a TTL (up to %s); a file with its own secret does not wait",
			lease.ErrNoFreeNode, until.Format(time.RFC3339), ErrNewFile, s.cfg.Nodes.First, s.cfg.Nodes.Nodes, s.cfg.LongestTTL))
	}
	return g, err
}

// limit checks a request and shortens it: no grant ends later than the longest TTL
// from now, which is how long the next file waits if this one is lost.
func (s *Store) limit(r lease.Request) (lease.Request, error) {
	now := s.cfg.now()
	if err := driver.CheckRequest(r, now); err != nil {
		return r, err
	}
	ahead := max(r.Now.Sub(now), 0)
	if r.TTL = min(r.TTL, s.cfg.LongestTTL-ahead); r.TTL < lease.MinTTL {
		return r, fmt.Errorf("%w by %s, and the longest TTL is %s", lease.ErrClockAhead, ahead, s.cfg.LongestTTL)
	}
	return r, nil
}

// share reserves a host's share of a fleet's nodes for one longest TTL if the
// file has not granted them before: a lost file may have. It returns the end of
// that wait.
func (s *Store) share(ctx context.Context, now time.Time) (until time.Time, err error) {
	if s.cfg.Nodes.Nodes == 0 || s.cfg.Secret == driver.OwnSecret {
		return until, nil
	}
	if known := s.until.Load(); known != nil {
		return *known, nil
	}
	name := fmt.Sprintf("share-%d+%d", s.cfg.Nodes.First, s.cfg.Nodes.Nodes)
	o, err := s.file.Read(ctx, name)
	switch {
	case err != nil:
		return until, err
	case o.Version != "":
		if until, err = time.Parse(time.RFC3339, string(o.Data)); err != nil {
			return until, fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
		}
		s.until.Store(&until)
		return until, nil
	}
	if until = now.Add(s.cfg.LongestTTL); until.Nanosecond() > 0 {
		until = until.Truncate(time.Second).Add(time.Second)
	}
	// Whoever is stopped in between raises them again.
	if err := s.Raise(ctx, until); err != nil {
		return until, err
	}
	if _, err := s.file.Write(ctx, name, []byte(until.UTC().Format(time.RFC3339)), ""); err != nil && !errors.Is(err, pages.ErrChanged) {
		return until, err
	}
	return s.share(ctx, now)
}

// Renew implements [lease.Store]. The end is at most the longest TTL from now.
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	r, err := s.limit(r)
	if err != nil {
		return lease.Grant{}, fmt.Errorf("boltstore: %s: renew: %w", s.file.path, err)
	}
	return s.Store.Renew(ctx, g, r)
}
