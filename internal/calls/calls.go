// Package calls has helpers for the tests of several stores: requests, one call of each kind with
// the number of its requests, and a check of errors. It is not a part of lease/leasetest, which is
// public and only for authors of stores.
package calls

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// ID is the ID of the store in a test.
const ID = "0123456789abcdef0123456789abcdef"

// Request returns a request for a minute, of the store with [ID].
func Request(now time.Time) lease.Request {
	return lease.Request{Store: ID, Nonce: lease.NewNonce(), Now: now, TTL: time.Minute}
}

// Renewal returns the request that moves the end of a grant by a minute.
func Renewal(g lease.Grant) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: g.End.Add(time.Minute - lease.MaxTTL),
		TTL: lease.MaxTTL}
}

// Everything creates a store of one block and calls each method once, as an operator and then, with
// another client, as a process. If done is not nil, it is called with the name of each call that
// returned.
func Everything(ctx context.Context, open func() (stores.Store, error),
	done func(call string)) error {
	s, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	now := time.Now()
	r := Request(now)
	var g lease.Grant
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"create", func() error {
			return s.Create(ctx,
				lease.Description{ID: ID, Created: now, Nodes: 8, LongestTTL: lease.MaxTTL})
		}},
		{"start", func() (err error) {
			if s, err = open(); err == nil {
				_, err = s.Describe(ctx)
			}
			return err
		}},
		{"acquire", func() error { _, err := s.Acquire(ctx, r); return err }},
		// the first answer was lost
		{"acquire again", func() (err error) { g, err = s.Acquire(ctx, r); return err }},
		{"acquire in vain", func() error {
			if _, err := s.Acquire(ctx, Request(now)); !errors.Is(err, lease.ErrNoFreeNode) {
				return errors.Join(
					errors.New("another process was granted the only block, or an error"), err)
			}
			return nil
		}},
		{"renew", func() (err error) { g, err = s.Renew(ctx, g, Renewal(g)); return err }},
		{"get", func() error { _, err := s.Get(ctx, g); return err }},
		{"release", func() error { return s.Release(ctx, g, lease.NewNonce(), now) }},
		{"list", func() error { _, err := s.List(ctx); return err }},
		{"add secret", func() error { return s.AddSecret(ctx, ID, "0123456789abcdef") }},
		{"replace", func() error {
			return s.Replace(ctx, ID, strings.Repeat("e", len(ID)), "0123456789abcdef")
		}},
		{"close", s.Close},
	} {
		if err := c.call(); err != nil {
			return err
		}
		if done != nil {
			done(c.name)
		}
	}
	return nil
}

// Call is a call that has returned.
type Call struct {
	Name string
	Err  error
}

// OnBlocks makes each call that reads or changes blocks, with a grant and the time now.
func OnBlocks(ctx context.Context, s stores.Store, g lease.Grant, now time.Time) []Call {
	_, acquire := s.Acquire(ctx, Request(now))
	_, renew := s.Renew(ctx, g, Renewal(g))
	_, get := s.Get(ctx, g)
	_, list := s.List(ctx)
	release := s.Release(ctx, g, lease.NewNonce(), now)
	return []Call{{"acquire", acquire}, {"renew", renew}, {"get", get}, {"list", list},
		{"release", release}}
}

// Server returns the value of an environment variable, the address of the server for a store's
// tests. If the variable is not set, tb fails: go test says nothing of tests that it skips. With
// -short tb is skipped, and with the value "none".
func Server(tb testing.TB, variable, form string) string {
	tb.Helper()
	value := os.Getenv(variable)
	switch {
	case value == "none", value == "" && testing.Short():
		tb.Skip("no server")
	case value == "":
		tb.Fatal("no server: run this in the repository, `go run ./integration/servers/with " +
			"go test ./lease/…`, or set " + variable + " to " + form + ", or skip with -short")
	}
	return value
}

// Transport counts the requests of a client.
type Transport struct {
	http.RoundTripper
	N atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.N.Add(1)
	return t.RoundTripper.RoundTrip(r)
}

// Costs calls each method once, as [Everything] does, and checks the number of requests, which n
// counts, of those in want.
func Costs(tb testing.TB, open func() (stores.Store, error), n *atomic.Int64,
	want map[string]int64) {
	tb.Helper()
	err := Everything(tb.Context(), open, func(call string) {
		got := n.Swap(0)
		if want, ok := want[call]; ok && got != want {
			tb.Errorf("%s: %d requests, want %d", call, got, want)
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// WantError returns a check that an error wraps the sentinel, if not nil, and contains, with its
// fix, always and every text, but no secret.
func WantError(always string, secrets ...string) func(tb testing.TB, what string, err,
	sentinel error, texts ...string) {
	return func(tb testing.TB, what string, err, sentinel error, texts ...string) {
		tb.Helper()
		if err == nil || sentinel != nil && !errors.Is(err, sentinel) {
			tb.Errorf("%s: got error %v, want %v", what, err, sentinel)
			return
		}
		err = lease.Advise(err)
		for _, text := range append(texts, always) {
			if !strings.Contains(err.Error(), text) {
				tb.Errorf("%s: error %q does not contain %q", what, err, text)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(err.Error(), secret) {
				tb.Errorf("%s: error %q contains a secret", what, err)
			}
		}
	}
}
