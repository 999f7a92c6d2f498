package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
)

// A copy of a store in another place grants nothing, until an operator says that the original is
// gone.
func TestMoved(t *testing.T) {
	server := &counted{Objects: memstore.Objects{Clock: time.Now}, Place: "here"}
	open(server, 16, few(64))
	server.Place = "elsewhere"
	until := time.Now().Add(time.Hour)
	refused := func(when string) {
		t.Helper()
		s := client(server, 16)
		_, described := s.Describe(t.Context())
		for _, call := range append(calls.OnBlocks(t.Context(), s, lease.Grant{}, time.Now()),
			calls.Call{Name: "describe", Err: described},
			calls.Call{Name: "create", Err: s.Create(t.Context(), describe(few(64)))},
			calls.Call{Name: "add secret", Err: s.AddSecret(t.Context(), "0123456789abcdef")}) {
			wantErr(t, when+": "+call.Name, call.Err, lease.ErrMoved)
			if !lease.Permanent(call.Err) {
				t.Errorf("%s: %s: %v is not permanent", when, call.Name, call.Err)
			}
		}
	}
	refused("a copy")

	// The call is interrupted after the first write: nothing is granted before it is repeated.
	writes := 0
	ctx, cancel := context.WithCancel(t.Context())
	server.Accepts = func(_ string, unchanged bool) bool {
		if writes++; writes > 1 {
			cancel()
			return false
		}
		return unchanged
	}
	if _, err := client(server, 16).MovedHere(ctx, until); err == nil {
		t.Error("it was not interrupted")
	}
	server.Accepts = nil
	s := client(server, 16)
	_, err := s.Acquire(t.Context(), request(time.Now()))
	wantErr(t, "acquire in between", err, lease.ErrRaising)
	if to, err := s.MovedHere(t.Context(), until); err != nil || to.Before(until) {
		t.Fatalf("raised to %s, %v", to, err)
	}
	_, err = client(server, 16).Acquire(t.Context(), request(time.Now()))
	wantErr(t, "before the leases of the original are over", err, lease.ErrNoFreeNode)
	_, err = client(server, 16).Acquire(t.Context(), request(until.Add(2*time.Second)))
	wantErr(t, "after that", err, lease.ErrClockAhead)
	server.Place = "here"
	refused("the original")
}

// A copy in another place refuses a client that holds a lease of the original, too: the original
// may grant the block to others when the lease is over. The client continues when an operator has
// moved the store.
func TestMovedWhileInUse(t *testing.T) {
	server := &counted{Place: "here"}
	s, later := open(server, 2, few(8)), t0.Add(time.Hour)
	g := mustAcquire(t, s, request(t0))
	server.Place = "elsewhere"
	wantWrites(t, "in a copy", server, 0, func() {
		for _, call := range calls.OnBlocks(t.Context(), s, g, t0) {
			if call.Name != "list" {
				wantErr(t, call.Name, call.Err, lease.ErrMoved)
			}
		}
	})
	if _, err := client(server, 2).MovedHere(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	g = mustRenew(t, s, mustAcquire(t, s, request(later)))

	// Another store in another place is no copy.
	server.Delete("")
	server.Place = "a third place"
	if err := client(server, 2).Create(t.Context(), other()); err != nil {
		t.Fatal(err)
	}
	_, err := s.Renew(t.Context(), g, renewal(protocol.NewNonce(), later))
	wantErr(t, "renew in another store", err, lease.ErrReplaced)
}
