package faults

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// Store is a store whose messages have fates, within the process of its client.
type Store struct {
	driver.Store
	log *os.File
}

// NewStore returns s with faults. Each fate is written to the file as one byte:
// the processes of a test share it.
func NewStore(s driver.Store, log string) (*Store, error) {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return &Store{s, f}, err
}

// Add counts the fates that processes wrote to a file.
func (c *Counts) Add(log string) error {
	b, err := os.ReadFile(log)
	for _, f := range b {
		c[f].Add(1)
	}
	return err
}

// Codec implements [driver.CodecStore].
func (s *Store) Codec() *randflake.Codec { return s.Store.(driver.CodecStore).Codec() }

var errLost = errors.New("faults: the message or its answer is lost")

func (s *Store) through(ctx context.Context, call func(context.Context) error) error {
	before, err := s.log.Stat()
	if err != nil {
		return err
	}
	f := fateOf(before.Size())
	if _, err := s.log.Write([]byte{byte(f)}); err != nil {
		return err
	}
	again := func() {
		time.Sleep(while())
		_ = call(context.WithoutCancel(ctx))
	}
	switch f {
	case slow:
		time.Sleep(moment())
	case requestLost:
		return errLost
	case answerLost:
		_ = call(ctx)
		return errLost
	case late:
		go again()
		return errLost
	case doubled:
		go again()
	}
	return call(ctx)
}

// answered returns the result of one of the calls that a message causes.
func answered(ctx context.Context, s *Store, call func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
	first := make(chan lease.Grant, 2)
	err := s.through(ctx, func(ctx context.Context) error {
		g, err := call(ctx)
		first <- g
		return err
	})
	if err != nil {
		return lease.Grant{}, err
	}
	return <-first, nil
}

// Acquire implements [lease.Store].
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	return answered(ctx, s, func(ctx context.Context) (lease.Grant, error) { return s.Store.Acquire(ctx, r) })
}

// Renew implements [lease.Store].
func (s *Store) Renew(ctx context.Context, g lease.Grant, next string, end time.Time) (lease.Grant, error) {
	return answered(ctx, s, func(ctx context.Context) (lease.Grant, error) { return s.Store.Renew(ctx, g, next, end) })
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	return s.through(ctx, func(ctx context.Context) error { return s.Store.Release(ctx, g, next, unused) })
}

// Get implements [lease.Store].
func (s *Store) Get(ctx context.Context, g lease.Grant) (lease.Grant, error) {
	return answered(ctx, s, func(ctx context.Context) (lease.Grant, error) { return s.Store.Get(ctx, g) })
}
