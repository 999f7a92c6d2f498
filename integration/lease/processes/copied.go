package processes

import (
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// Copied checks that a copy of the store at a URL grants nothing until it has a secret of its own,
// and that the original continues. Duplicate copies the objects of the store unchanged and returns
// the copy's URL.
func Copied(t *testing.T, url string, duplicate func() (string, error)) {
	t.Helper()
	original := Store(url)
	original.Create(t, lease.Description{ID: storeID})
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
	next := lease.NewNonce()
	if err := Store(at).Client(t).Replace(t.Context(), storeID, next,
		"0123456789abcdef"); err != nil {
		t.Errorf("a new secret: %v", err)
	}
	r := request(time.Now())
	r.Store = next
	if _, err := Store(at).Client(t).Acquire(t.Context(), r); err != nil {
		t.Errorf("acquire after that: %v", err)
	}
	if _, err := original.Client(t).Acquire(t.Context(), request(time.Now())); err != nil {
		t.Errorf("acquire in the original: %v", err)
	}
}

const storeID = "0123456789abcdef0123456789abcdef"

func request(now time.Time) lease.Request {
	return lease.Request{Store: storeID, Nonce: lease.NewNonce(), Now: now, TTL: 2 * time.Second,
		Owner: "test"}
}
