//go:build unix

// Package processes creates stores at URLs, and runs processes on them while a server fails: see
// [Run].
package processes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// Store is the URL of a store.
type Store string

// Open returns a new client of the store.
func (s Store) Open() (stores.Store, error) { return stores.Open(string(s)) }

// Client returns a new client of the store until tb ends.
func (s Store) Client(tb testing.TB) stores.Store {
	tb.Helper()
	client, err := s.Open()
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	tb.Cleanup(func() {
		if err := client.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return client
}

// Create creates the store that d describes, and returns its description. Fields that d leaves
// empty are set as by [stores.NewDescription].
func (s Store) Create(tb testing.TB, d lease.Description) lease.Description {
	tb.Helper()
	return CreateWith(tb, s.Client(tb), d)
}

// CreateWith creates the store that d describes with a client of it.
func CreateWith(tb testing.TB, client stores.Store, d lease.Description) lease.Description {
	tb.Helper()
	if d.Created.IsZero() {
		d.Created = time.Now()
	}
	d, err := stores.NewDescription(d)
	if err != nil {
		tb.Fatal(err)
	}
	if err := client.Create(context.Background(), d); err != nil {
		tb.Fatalf("create: %v", err)
	}
	return d
}

// Objects returns the objects in which a new client of the store keeps it, until tb ends, to check
// them with package leasetest.
func (s Store) Objects(tb testing.TB) driver.Objects {
	tb.Helper()
	return s.Client(tb).(interface{ Objects() driver.Objects }).Objects()
}

// Create creates the store at a URL for a secret, as `traceflake lease create` does, and returns a
// client.
func Create(tb testing.TB, url string, secret *randflake.Codec) stores.Store {
	tb.Helper()
	d := Store(url).Create(tb, lease.Description{})
	client := Store(url).Client(tb)
	if err := client.AddSecret(tb.Context(), d.ID, d.Fingerprint(secret)); err != nil {
		tb.Fatal(err)
	}
	return client
}

// Outage returns a function that kills a server, calls during, and starts the server again with the
// data it had.
func Outage(s interface {
	Kill() error
	Run() error
	Wait(context.Context) error
}) func(during func()) error {
	return func(during func()) error {
		killed := s.Kill()
		during()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return errors.Join(killed, s.Run(), s.Wait(ctx))
	}
}
