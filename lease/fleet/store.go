package fleet

import (
	"context"
	"errors"
	"fmt"
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

	mu    sync.Mutex
	own   *randflake.Keyring // the secrets that were read last, or nil
	known []lease.History    // all that the store has shown, the present one first

	// was is the history that a lease directory had after the last restore of this process, ""
	// before it was read. It is nil if there was no restore.
	was atomic.Pointer[string]

	keyring atomic.Pointer[randflake.Keyring] // of known
	asked   atomic.Bool                       // by unknown, in the last five seconds
}

// secrets returns the process's secrets, for [lease.Start].
func (s *store) secrets(ctx context.Context) (*randflake.Keyring, error) {
	return s.read(ctx, false)
}

// read returns the secrets: those read before or, if a new one is needed, those of the file now. A
// lease directory that is missing is created with its secret.
func (s *store) read(ctx context.Context, again bool) (k *randflake.Keyring, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.own != nil && !again:
		return s.own, nil
	case s.config.OwnSecret():
		k, err = filestore.Secret(ctx, s.config.Directory())
	case s.own != nil:
		k, err = s.config.loadSecrets(readKeyring) // what LoadKeyring reports was reported
	default:
		k, err = s.config.LoadSecrets()
	}
	if err == nil {
		s.own = k
	}
	return k, err
}

// Describe implements [lease.Store].
func (s *store) Describe(ctx context.Context) (lease.Description, error) {
	d, err := s.Store.Describe(ctx)
	if s.config.Directory() != "" && errors.Is(err, lease.ErrNoStore) {
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
		if r.Secrets, err = s.read(ctx, true); err == nil {
			d, err = s.Store.Begin(ctx, r)
		}
	}
	if err == nil || errors.Is(err, lease.ErrHistory) {
		s.learn(ctx, d)
	}
	return d, err
}

// OnRestore must be called after this process was restored from a snapshot. A lease directory may
// have been copied with the process: then another history must begin in it.
func (s *store) OnRestore() {
	if s.config.Directory() != "" {
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
	k, err := s.secrets(ctx)
	if _, unknown := d.Find(k); unknown != nil {
		k, err = s.read(ctx, true)
	}
	if _, unknown := d.Find(k); err != nil || unknown != nil { // which the Keeper reports
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) > 0 && s.known[0].ID == d.ID {
		return
	}
	s.known = d.Merge(s.known)
	d.Earlier = s.known[1:]
	s.keyring.Store(Keys(k, d))
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
	if time.Since(traceid.Time(id)) > fresh || !s.asked.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(unknownEvery, func() { s.asked.Store(false) })
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), unknownEvery)
		defer cancel()
		_, _ = s.Describe(ctx) // the Keeper reports a store that fails
	}()
}
