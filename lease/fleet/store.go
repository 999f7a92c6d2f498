package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/filestore" // registers file:DIR
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
	own   *randflake.Keyring // the secrets that were read last, or nil
	known lease.Description  // with all histories that the store has shown

	// was is the history that a lease directory had after the last restore of this process, ""
	// before it was read. It is nil if there was no restore.
	was atomic.Pointer[string]

	keyring atomic.Pointer[randflake.Keyring] // of known
	asked   atomic.Int64                      // when, since opened, unknown last read, in ns
}

// secrets returns the process's secrets, for [lease.Start].
func (s *store) secrets(ctx context.Context) (_ *randflake.Keyring, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own, err = s.read(ctx)
	}
	return s.own, err
}

// readAgain returns the secrets as they are now: one may have been added to the file.
func (s *store) readAgain(ctx context.Context) (*randflake.Keyring, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.read(ctx)
	if err == nil {
		s.own = k
	}
	return k, err
}

// read reads the secrets. A lease directory that is missing is created with its secret.
func (s *store) read(ctx context.Context) (*randflake.Keyring, error) {
	switch c := s.config; {
	case c.ownSecret():
		return filestore.Secret(ctx, c.directory())
	case c.Secrets != nil:
		return c.Secrets, nil
	default:
		return readKeyring(c.SecretFile)
	}
}

// Describe implements [lease.Store].
func (s *store) Describe(ctx context.Context) (lease.Description, error) {
	d, err := s.Store.Describe(ctx)
	if s.config.directory() != "" && errors.Is(err, lease.ErrNoStore) {
		k, err := s.secrets(ctx)
		if err == nil {
			err = stores.Ensure(ctx, s.Store, k.Codec())
		}
		if err != nil {
			return d, err
		}
		return s.Describe(ctx)
	}
	if err == nil {
		s.learn(ctx, d)
		err = s.copied(d.ID)
	}
	return d, err
}

// Begin implements [lease.Store].
func (s *store) Begin(ctx context.Context, r lease.BeginRequest) (lease.Description, error) {
	if s.was.Load() != nil {
		if d, err := s.Describe(ctx); errors.Is(err, lease.ErrMoved) {
			r.Leaves = d.ID
		}
	}
	d, err := s.Store.Begin(ctx, r)
	if errors.Is(err, lease.ErrWrongSecret) { // a begin under an added one may be interrupted
		if r.Secrets, err = s.readAgain(ctx); err != nil {
			return d, err
		}
		d, err = s.Store.Begin(ctx, r)
	}
	if err == nil || errors.Is(err, lease.ErrHistory) {
		s.learn(ctx, d)
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

// copied returns an error if a lease directory still has the history that it had at the first look
// after a restore.
func (s *store) copied(id string) error {
	was := s.was.Load()
	if was != nil && *was == "" {
		was = &id
		s.was.Store(was)
	}
	if was == nil || *was != id {
		return nil
	}
	return fmt.Errorf("%w: this process was restored from a snapshot", lease.ErrMoved)
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

// learn makes a description, and the histories that the store has forgotten since, the known ones.
func (s *store) learn(ctx context.Context, d lease.Description) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known.ID == d.ID {
		return
	}
	if _, err := d.Find(s.own); err != nil { // it may have been added to the file
		k, err := s.read(ctx)
		if err != nil { // which the Keeper reports
			return
		}
		s.own = k
	}
	if _, err := d.Find(s.own); err != nil {
		return
	}
	shown := d.Histories()
	for _, h := range s.known.Histories() {
		same := func(o lease.History) bool { return o.ID == h.ID }
		if h.ID != "" && !slices.ContainsFunc(shown, same) {
			d.Earlier = append(slices.Clip(d.Earlier), h)
		}
	}
	s.known = d
	s.keyring.Store(Keys(s.own, d))
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
