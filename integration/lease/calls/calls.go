// Package calls has what the tests of all stores need for single calls, and for many while a
// server fails.
package calls

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Request returns a request for a minute.
func Request(now time.Time) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: time.Minute}
}

// Renewal returns the request that moves a grant's end to end.
func Renewal(nonce string, end time.Time) lease.Request {
	return lease.Request{Nonce: nonce, Now: end.Add(-lease.MaxTTL), TTL: lease.MaxTTL}
}

// WantError returns a check that an error is the sentinel, if there is one, and says every text
// and the package's name, but no secret.
func WantError(name string, secrets ...string) func(tb testing.TB, what string, err, sentinel error, texts ...string) {
	return func(tb testing.TB, what string, err, sentinel error, texts ...string) {
		tb.Helper()
		if err == nil || sentinel != nil && !errors.Is(err, sentinel) {
			tb.Errorf("%s: got error %v, want %v", what, err, sentinel)
			return
		}
		for _, text := range append(texts, name+": ") {
			if !strings.Contains(err.Error(), text) {
				tb.Errorf("%s: error %q does not say %q", what, err, text)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(err.Error(), secret) {
				tb.Errorf("%s: error %q has a secret", what, err)
			}
		}
	}
}

// Loaded returns what n clients of a new store with four blocks see while fault happens.
func Loaded(tb testing.TB, n int, storage leasetest.Storage, fault func() error) *leasetest.History {
	tb.Helper()
	few := driver.NodeRange{First: 0, Nodes: 1 << 17, BlockSize: 1 << 15}
	storage.Create(tb, leasetest.Nodes(few))
	history := leasetest.NewHistory(few)
	var clients []lease.Store
	for range n {
		clients = append(clients, history.Client(storage.Client(tb)))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		leasetest.Load{Calls: 50, Seed: 1, Timeout: time.Second, Pause: 60 * time.Millisecond}.Run(clients, few)
	}()
	time.Sleep(300 * time.Millisecond)
	if err := fault(); err != nil {
		tb.Error(err)
	}
	<-done
	calls, unknown := history.Len()
	tb.Logf("%d calls, %d without an answer", calls, unknown)
	if unknown > calls/2 {
		tb.Errorf("%d of %d calls have no answer; that shows little", unknown, calls)
	}
	return history
}
