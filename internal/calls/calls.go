// Package calls has helpers for the tests of several stores: requests, one call of each kind, and a
// check of errors. It is not a part of lease/leasetest, which is public and only for authors of
// stores.
package calls

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// Secret returns a secret for tests.
func Secret() *randflake.Codec { return Secrets().Codec() }

// Secrets returns a keyring with [Secret], and another secret.
func Secrets() *randflake.Keyring {
	k, err := randflake.ParseKeyring(
		"0123456789abcdef0123456789abcdef\nfedcba9876543210fedcba9876543210")
	if err != nil {
		panic(err)
	}
	return k
}

// Request returns a request for a minute, in a history.
func Request(history string, now time.Time) lease.Request {
	return lease.Request{Store: history, Nonce: lease.NewNonce(), Now: now, TTL: time.Minute}
}

// Renewal returns the request that moves the end of a grant by a minute.
func Renewal(g lease.Grant) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: g.End.Add(time.Minute - lease.MaxTTL),
		TTL: lease.MaxTTL}
}

// Everything creates a store of one block and calls each method once, as an operator and then, with
// another client, as a process. It returns the first error.
func Everything(ctx context.Context, open func() (stores.Store, error)) error {
	operator, err1 := open()
	process, err2 := open()
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	_, created := operator.Create(ctx, lease.Description{Nodes: 8, LongestTTL: lease.MaxTTL},
		Secret())
	d, described := process.Describe(ctx)
	if err := cmp.Or(created, described); err != nil {
		return err
	}
	g, acquired := process.Acquire(ctx, Request(d.ID, time.Now()))
	g, renewed := process.Renew(ctx, g, Renewal(g))
	_, got := process.Get(ctx, g)
	_, listed := process.List(ctx)
	_, begun := process.Begin(ctx, Begin(d, lease.Rekey))
	return cmp.Or(acquired, renewed, got, listed, begun, operator.Close(), process.Close())
}

// Begin returns a request for a history that leaves the one of d.
func Begin(d lease.Description, reason string) lease.BeginRequest {
	return lease.BeginRequest{Leaves: d.ID, Reason: reason, Now: time.Now(), Secrets: Secrets(),
		Known: d.Earlier}
}

// Call is a call that has returned.
type Call struct {
	Name string
	Err  error
}

// OnBlocks makes each call that reads or changes blocks, with a grant and the time now.
func OnBlocks(ctx context.Context, s stores.Store, g lease.Grant, now time.Time) []Call {
	_, acquire := s.Acquire(ctx, Request(g.Store, now))
	_, renew := s.Renew(ctx, g, Renewal(g))
	_, get := s.Get(ctx, g)
	_, list := s.List(ctx)
	return []Call{{"acquire", acquire}, {"renew", renew}, {"get", get}, {"list", list}}
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

// Outage returns how long the kit keeps a server unreachable: in nightly runs a quarter of an hour,
// since some clients give up after minutes.
func Outage() time.Duration {
	if os.Getenv("TRACEFLAKETEST_NIGHTLY") == "" {
		return 0 // the kit's default
	}
	return 15 * time.Minute
}

// Meaning returns what a store makes of an error of its objects: it repeats the request ("again"),
// reads the object ("changed"), or reports an operator's task ("clock", "schema", "misconfigured");
// after any other error ("unknown") a write may have been stored.
func Meaning(err error) string {
	for _, m := range []struct {
		about error
		name  string
	}{
		{driver.ErrChanged, "changed"}, {lease.ErrClockAhead, "clock"},
		{lease.ErrSchemaVersion, "schema"}, {lease.ErrMisconfigured, "misconfigured"},
	} {
		if errors.Is(err, m.about) {
			return m.name
		}
	}
	if _, busy := errors.AsType[*driver.TryAgain](err); busy {
		return "again"
	}
	if err != nil {
		return "unknown"
	}
	return ""
}

// Answers checks that each recorded message of a table, replayed to a client, has the meaning and
// the fix of its row, and of no other, with words of the fixes replaced.
func Answers(tb testing.TB, rows driver.Answers, replay func(row driver.Answer,
	message string) error, words ...string) {
	tb.Helper()
	for _, row := range rows {
		want := strings.NewReplacer(words...).Replace(cmp.Or(row.Fix, lease.Fix(row.Means)))
		for _, message := range row.Recorded {
			err := replay(row, message)
			if lease.Fix(err) != want || row.Means != nil && !errors.Is(err, row.Means) ||
				lease.Permanent(err) != lease.Permanent(row.Means) {
				tb.Errorf("%s %q: %v, fix %q, permanent: %t; want those of %+v", row.Code, message,
					err, lease.Fix(err), lease.Permanent(err), row)
			}
		}
		if len(row.Recorded) == 0 {
			tb.Errorf("no message is recorded of %+v", row)
		}
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
		if strings.Contains(err.Error(), lease.ErrInvalidRequest.Error()) {
			tb.Errorf("%s: error %q says more than what is wrong", what, err)
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

// Open returns a client of the store at a URL until tb ends.
func Open(tb testing.TB, url string) stores.Store {
	tb.Helper()
	s, err := stores.Open(url)
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return s
}

// Objects returns the objects in which a new client keeps the store at a URL, to check them with
// package leasetest.
func Objects(tb testing.TB, url string) driver.Objects {
	tb.Helper()
	return Open(tb, url).(interface{ Objects() driver.Objects }).Objects()
}
