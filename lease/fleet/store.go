package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// store is the store of a process. It remembers every history that it has shown, for verification,
// and creates a lease directory that is missing.
type store struct {
	stores.Store
	config Config
	opened time.Time

	mu    sync.Mutex
	own   *randflake.Keyring // the secrets that were read last
	lives []life             // of all histories that were shown, the present one first

	// was is the history that a lease directory had after a restore of this process, "" before it
	// was read, or nil.
	was atomic.Pointer[string]

	keyring atomic.Pointer[randflake.Keyring] // of the lives
	asked   atomic.Int64                      // when unknown last read the description, in ns since opened
}

// start reads the secrets, to return errors of the configuration. Those of a lease directory are
// read later: a disk that is full, read-only, busy or not mounted yet is an unavailable store.
func (s *store) start() error {
	if s.config.ownFile() {
		return nil
	}
	k, err := s.config.LoadSecrets()
	s.own = k
	return err
}

// secrets returns the process's secrets, for [lease.Start]. It reads their file again.
func (s *store) secrets(ctx context.Context) (*randflake.Keyring, error) {
	k, err := s.config.readSecrets()
	if s.config.ownFile() && errors.Is(err, fs.ErrNotExist) {
		if _, err := s.Describe(ctx); err != nil { // which creates it with the directory
			return nil, err
		}
		k, err = s.config.readSecrets()
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.own = k
	}
	return k, err
}

// Describe implements [lease.Store].
func (s *store) Describe(ctx context.Context) (lease.Description, error) {
	d, err := s.Store.Describe(ctx)
	if s.config.directory() != "" && errors.Is(err, lease.ErrNoStore) {
		if err := s.create(ctx); err != nil {
			return d, err
		}
		d, err = s.Store.Describe(ctx)
	}
	if err == nil {
		s.learn(d)
		err = s.copied(d.ID)
	}
	return d, err
}

// create creates a lease directory.
func (s *store) create(ctx context.Context) error {
	k, err := s.config.CreateSecrets()
	if err != nil {
		return err
	}
	return stores.Ensure(ctx, s.Store, k.Codec())
}

// Begin implements [lease.Store].
func (s *store) Begin(ctx context.Context, r lease.BeginRequest) (lease.Description, error) {
	if s.was.Load() != nil {
		if d, err := s.Describe(ctx); err == nil { // others have begun one since the restore
			return d, lease.ErrHistory
		}
	}
	was := s.was.Load()
	if was != nil {
		r.Leaves = *was
	}
	d, err := s.Store.Begin(ctx, r)
	if err == nil || errors.Is(err, lease.ErrHistory) {
		s.learn(d)
		if was != nil { // unless the process was restored once more
			s.was.CompareAndSwap(was, nil)
		}
	}
	return d, err
}

// OnRestore must be called after this process was restored from a snapshot. A lease directory may
// have been copied with the process: then another history must begin in it.
func (s *store) OnRestore() {
	if s.config.directory() != "" {
		s.was.Store(new(string))
	}
}

// copied returns an error as long as a lease directory has the history that it had at the first
// look after a restore.
func (s *store) copied(id string) error {
	was := s.was.Load()
	switch {
	case was == nil:
		return nil
	case *was == "":
		s.was.CompareAndSwap(was, &id)
		return s.copied(id)
	case *was == id:
		return fmt.Errorf("%w: this process was restored from a snapshot", lease.ErrMoved)
	}
	s.was.CompareAndSwap(was, nil)
	return nil
}

// Acquire implements [lease.Store].
func (s *store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if s.was.Load() != nil {
		if _, err := s.Describe(ctx); err != nil {
			return lease.Grant{}, err
		}
	}
	return s.Store.Acquire(ctx, r)
}

// learn adds the histories of a description to those that are known, and their keys to the keyring.
func (s *store) learn(d lease.Description) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := d.Find(s.own)
	if err == nil && len(s.lives) > 0 && s.lives[0].ID == d.ID {
		return
	}
	if err != nil {
		if k, err := s.config.readSecrets(); err == nil {
			s.own = k
		}
	}
	s.lives = merge(livesOf(d), s.lives, time.Now().Add(d.LongestTTL))
	s.keyring.Store(keys(s.own, s.lives))
}

const (
	// unknownEvery is how often at most an unknown ID makes a process read the description.
	unknownEvery = 5 * time.Second
	// fresh is how old an ID may be that is worth the request: older ones are of histories that
	// were known then.
	fresh = 10 * time.Minute
)

// unknown reads the description in the background, because an ID is under no known key.
func (s *store) unknown(id trace.TraceID) {
	now, last := int64(time.Since(s.opened)), s.asked.Load()
	if time.Since(traceid.Time(id)) > fresh || now-last < int64(unknownEvery) ||
		!s.asked.CompareAndSwap(last, now) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), unknownEvery)
		defer cancel()
		_, _ = s.Describe(ctx) // the Keeper reports a store that fails
	}()
}

// directory returns the path of a lease directory, or "".
func (c Config) directory() string {
	path, ok := strings.CutPrefix(c.Store, "file:")
	if !ok {
		return ""
	}
	return path
}

// ownFile reports whether the secret is that of a lease directory.
func (c Config) ownFile() bool {
	return c.Secrets == nil && c.SecretFile == "" && c.directory() != ""
}
