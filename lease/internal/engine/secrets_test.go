package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// Secrets that operators add at once, each twice, are all there, once.
func TestAddSecretsAtOnce(t *testing.T) {
	const n = 6
	server := new(counted)
	s := open(server, 2, few(8))
	var all sync.WaitGroup
	for i := range 2 * n {
		all.Go(func() {
			if err := client(server, 2).AddSecret(context.Background(), storeID,
				fmt.Sprintf("%016x", i%n)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	d, err := s.Describe(t.Context())
	slices.Sort(d.Secrets)
	if err != nil || len(d.Secrets) != n || d.Secrets[n-1] != fmt.Sprintf("%016x", n-1) {
		t.Errorf("%d secrets were added, each twice; now there are %q, %v", n, d.Secrets, err)
	}
	for _, bad := range []string{"", "0123456789abcde", "0123456789ABCDEF", "my secret"} {
		wantErr(t, "add the secret "+bad, s.AddSecret(t.Context(), storeID, bad),
			lease.ErrInvalidRequest)
	}
	wantErr(t, "add a secret of another store", s.AddSecret(t.Context(), nextID, fingerprint),
		lease.ErrReplaced)
}

// With a secret that was removed nothing is acquired or renewed, whichever writes of the removal
// failed before it was repeated. With others all goes on.
func TestRemoveSecret(t *testing.T) {
	const old, next = "0123456789abcdef", "fedcba9876543210"
	for requests, done := 0, false; !done; requests++ {
		server := new(counted)
		s := open(server, 2, few(32))
		for _, secret := range []string{old, next} {
			if err := s.AddSecret(t.Context(), storeID, secret); err != nil {
				t.Fatal(err)
			}
		}
		with := func(secret string) lease.Request {
			r := request(t0)
			r.Secret = secret
			return r
		}
		forgotten, current := mustAcquire(t, s, with(old)), mustAcquire(t, s, with(next))
		wantErr(t, "remove an unknown one", s.RemoveSecret(t.Context(), storeID, "ff"),
			lease.ErrInvalidRequest)
		done = killed(server, requests).RemoveSecret(t.Context(), storeID, old) == nil
		remove := func() {
			if err := s.RemoveSecret(t.Context(), storeID, old); err != nil {
				t.Fatalf("after %d requests: %v", requests, err)
			}
		}
		remove()
		wantWrites(t, "remove it again", server, 0, remove)
		d, err := s.Describe(t.Context())
		if err != nil || !slices.Equal(d.Secrets, []string{next}) {
			t.Errorf("the secrets that are left: %q, %v; want %q", d.Secrets, err, next)
		}
		_, err = s.Renew(t.Context(), forgotten, with(old))
		wantErr(t, "renew", err, lease.ErrWrongSecret)
		_, err = s.Acquire(t.Context(), with(old))
		wantErr(t, "acquire", err, lease.ErrWrongSecret)
		mustAcquire(t, s, with(next))
		if g, err := s.Renew(t.Context(), current, with(next)); err != nil || g.Version != 2 {
			t.Errorf("renew with the other secret: %+v, %v", g, err)
		}
		if err := s.Release(t.Context(), forgotten, lease.NewNonce(), t0); err != nil {
			t.Errorf("release: %v", err)
		}
		wantErr(t, "remove the last one", s.RemoveSecret(t.Context(), storeID, next),
			lease.ErrInvalidRequest)
		wantErr(t, "add it again", s.AddSecret(t.Context(), storeID, old), lease.ErrInvalidRequest)
		wantErr(t, "remove one of another store", s.RemoveSecret(t.Context(), nextID, next),
			lease.ErrReplaced)
	}
}

// A call whose context is over returns its error, and writes nothing.
func TestContextsThatAreOver(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	g := mustAcquire(t, s, request(t0))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{done, late} {
		for _, s := range []stores.Store{s, killed(server, 0)} {
			for _, call := range calls.OnBlocks(ctx, s, g, t0) {
				wantErr(t, call.Name, call.Err, ctx.Err())
			}
		}
	}
	if got, err := s.Get(t.Context(), g); err != nil || got != g {
		t.Errorf("now the block is %+v, %v; want %+v", got, err, g)
	}
}
