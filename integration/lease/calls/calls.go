// Package calls has what the tests of all stores need: single calls, processes, and counts of requests.
package calls

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
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
