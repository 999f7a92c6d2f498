//go:build unix

// Package processes creates stores at URLs, and runs processes on them while a server fails: see
// [Run].
package processes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// Create creates the store that d describes at a URL, with the secret of the tests, and returns a
// client of it.
func Create(tb testing.TB, url string, d lease.Description) stores.Store {
	tb.Helper()
	client := calls.Open(tb, url)
	if _, err := client.Create(context.Background(), d, calls.Secret()); err != nil {
		tb.Fatalf("create: %v", err)
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
