package processes

import (
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
)

// Copied checks that a copy of the store at a URL grants nothing until an operator says that the
// original is gone. Duplicate copies the objects of the store unchanged and returns the copy's URL.
func Copied(t *testing.T, url string, duplicate func() (string, error)) {
	t.Helper()
	original := Store(url)
	original.Create(t, lease.Description{})
	if _, err := original.Client(t).Acquire(t.Context(), request(time.Now())); err != nil {
		t.Fatal(err)
	}
	at, err := duplicate()
	if err != nil {
		t.Fatal(err)
	}
	_, describe := Store(at).Client(t).Describe(t.Context())
	_, acquire := Store(at).Client(t).Acquire(t.Context(), request(time.Now()))
	for call, err := range map[string]error{"describe": describe, "acquire": acquire} {
		if !errors.Is(err, lease.ErrMoved) {
			t.Errorf("%s in the copy: %v, want %v", call, err, lease.ErrMoved)
		}
	}
	if _, err := Store(at).Client(t).MovedHere(t.Context(), time.Now()); err != nil {
		t.Errorf("the original is gone: %v", err)
	}
	if _, err := Store(at).Client(t).Acquire(t.Context(),
		request(time.Now().Add(time.Second))); err != nil {
		t.Errorf("acquire after that: %v", err)
	}
}

func request(now time.Time) lease.Request {
	return lease.Request{Nonce: protocol.NewNonce(), Now: now, TTL: 2 * time.Second, Owner: "test"}
}
