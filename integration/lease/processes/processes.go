//go:build unix

// Package processes creates stores at URLs, and runs package leasetest on them while a server fails.
package processes

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/rowtest"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
	"github.com/traceflake/traceflake/randflake"
)

// Stores returns a harness whose storages are at the URLs that begin and end so, with names between them.
func Stores(knowsTime bool, begin, end string) rowtest.Harness {
	return rowtest.Harness{KnowsTime: knowsTime, New: func(testing.TB) rowtest.Storage {
		return Store(begin + strings.ToLower(rand.Text()) + end)
	}}
}

// Store returns the storage at a URL.
func Store(url string) rowtest.Storage {
	return rowtest.Storage{Open: func() (driver.Store, error) { return driver.Open(url) }}
}

// Create creates the store at a URL for a secret, as `traceflake lease create` does, and returns a client.
func Create(tb testing.TB, url string, secret *randflake.Codec) driver.Store {
	tb.Helper()
	storage := Store(url)
	d := storage.Create(tb, lease.Description{})
	client := storage.Client(tb)
	if err := client.AddSecret(tb.Context(), lease.Fingerprint(secret, d.ID)); err != nil {
		tb.Fatal(err)
	}
	return client
}

// Run runs processes on the store at a URL for one round, or until they have generated
// TRACEFLAKE_SOAK_IDS IDs.
func Run(t *testing.T, url string, outage func(during func()) error) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := leasetest.Processes{URL: url, Outage: outage}
	if text := os.Getenv("TRACEFLAKE_SOAK_IDS"); text != "" {
		var err error
		if p.IDs, err = strconv.ParseInt(text, 10, 64); err != nil || p.IDs < 1 {
			t.Fatalf("TRACEFLAKE_SOAK_IDS is %q, want a number of IDs", text)
		}
	}
	p.Run(t)
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
