// Package engine is the rule by which stores grant blocks of nodes, over the objects of a backend.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/internal/redact"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Store keeps leases on pages. Each page is an object.
type Store struct {
	objects *requests
	layout  driver.Layout
	secrets redact.Secrets // of the URL

	known atomic.Pointer[config] // the description of a history, as it was read last
	seen  seen
	close func() error

	// What a simulator replaces.
	random func([]byte) // for IDs of histories
	sleep  func(context.Context, time.Duration) error
	atOnce int // how many requests a call sends concurrently
}

var _ lease.Store = (*Store)(nil)

// New returns a store that keeps leases in objects. It sends no request. If BlocksPerPage is out of
// range, the error wraps [lease.ErrInvalidRequest].
func New(o driver.Objects, layout driver.Layout) (*Store, error) {
	if err := checkPages(layout.BlocksPerPage); err != nil {
		return nil, fmt.Errorf("%s: %w", layout.Name, err)
	}
	life, end := context.WithCancel(context.Background())
	s := &Store{objects: &requests{Objects: o, life: life, end: end}, layout: layout,
		random: entropy.Read, sleep: sleep, atOnce: 32}
	s.close = sync.OnceValue(s.end)
	return s, nil
}

// Simulate replaces the random bits of IDs and the pauses while the begin of another client is
// watched, and lets each call send one request at a time.
func (s *Store) Simulate(random func([]byte), sleep func(time.Duration)) {
	s.random, s.atOnce = random, 1
	s.sleep = func(_ context.Context, d time.Duration) error {
		sleep(d)
		return nil
	}
}

// Redact removes secrets from errors. It is called before the store is used.
func (s *Store) Redact(secrets redact.Secrets) { s.secrets = secrets }

// Objects returns the objects in which the store keeps leases, for package leasetest.
func (s *Store) Objects() driver.Objects { return s.objects.Objects }

// Describe implements [lease.Store]. It sends one request.
func (s *Store) Describe(ctx context.Context) (_ lease.Description, err error) {
	defer s.failed(ctx, &err, "describe")
	c, err := s.describe(ctx)
	return c.Description, err
}

// List implements [stores.Store]. It reads every page, not all at one moment.
func (s *Store) List(ctx context.Context) (blocks []lease.Grant, err error) {
	defer s.failed(ctx, &err, "list")
	c, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	numbers := make([]int, c.pages())
	for i := range numbers {
		numbers[i] = i
	}
	pages, err := s.readAll(ctx, c, numbers)
	if err := s.confirm(ctx, c, err); err != nil {
		return nil, err
	}
	for _, p := range pages {
		blocks = append(blocks, p.granted()...)
	}
	return blocks, nil
}

// Time implements [stores.Store]. It sends one request.
func (s *Store) Time(ctx context.Context) (_ time.Time, err error) {
	defer s.failed(ctx, &err, "time")
	o, err := s.objects.Read(ctx, configName)
	return o.Time, err
}

// CheckRights implements [stores.Store].
func (s *Store) CheckRights(ctx context.Context) (err error) {
	defer s.failed(ctx, &err, "check rights")
	return s.objects.do(ctx, func(ctx context.Context) error {
		if client, ok := s.objects.Objects.(interface{ CheckRights(context.Context) error }); ok {
			return client.CheckRights(ctx)
		}
		return driver.ErrRightsUnknown
	})
}

// closeTime is how long Close waits at most: some clients wait for a server that does not answer.
const closeTime = 500 * time.Millisecond

// Close implements [stores.Store].
func (s *Store) Close() error { return s.close() }

func (s *Store) end() error {
	closed := make(chan error, 1)
	go func() { closed <- s.objects.close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeTime):
		return fmt.Errorf("%s: close: the client has not ended within %s", s.layout.Name,
			closeTime)
	}
}

// failed adds the operation to an error.
func (s *Store) failed(ctx context.Context, failure *error, what string, args ...any) {
	err := *failure
	if err == nil {
		return
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	*failure = s.secrets.Error(driver.Diagnose(
		fmt.Errorf("%s: %s: %w", s.layout.Name, fmt.Sprintf(what, args...), err)))
}
