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
)

// Open returns a client of the store at a URL until tb ends.
func Open(tb testing.TB, url string) stores.Store {
	tb.Helper()
	client, err := stores.Open(url)
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

// Create creates the store that d describes at a URL, with the defaults of
// [stores.NewDescription], and returns a client of it.
func Create(tb testing.TB, url string, d lease.Description) stores.Store {
	tb.Helper()
	client := Open(tb, url)
	d.Created = time.Now()
	d, err := stores.NewDescription(d)
	if err == nil {
		err = client.Create(context.Background(), d)
	}
	if err != nil {
		tb.Fatalf("create: %v", err)
	}
	return client
}

// Objects returns the objects in which a new client keeps the store at a URL, to check them with
// package leasetest.
func Objects(tb testing.TB, url string) driver.Objects {
	tb.Helper()
	return Open(tb, url).(interface{ Objects() driver.Objects }).Objects()
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
