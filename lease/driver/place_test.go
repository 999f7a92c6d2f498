package driver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// onServer returns a new client of the store on a server, and a description for it.
func onServer(t *testing.T, server *calls.Memory) (driver.Store, lease.Description) {
	t.Helper()
	s, err := driver.New(server, driver.Layout{Name: "test", BlocksPerPage: 16})
	if err != nil {
		t.Fatal(err)
	}
	d, err := driver.NewDescription(lease.Description{Nodes: 512})
	if err != nil {
		t.Fatal(err)
	}
	return s, d
}

// A copy of a store in another place grants nothing, until an operator says that the original is
// gone.
func TestMoved(t *testing.T) {
	server := &calls.Memory{Memory: driver.Memory{Clock: time.Now}, Place: "here"}
	s, d := onServer(t, server)
	if err := s.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	server.Place = "elsewhere"
	until := time.Now().Add(time.Hour)
	refused := func(when string, want error) {
		t.Helper()
		s, _ := onServer(t, server)
		_, describe := s.Describe(t.Context())
		for _, call := range append(calls.OnBlocks(t.Context(), s, lease.Grant{}, time.Now()),
			calls.Call{Name: "describe", Err: describe},
			calls.Call{Name: "create", Err: s.Create(t.Context(), d)},
			calls.Call{Name: "add secret", Err: s.AddSecret(t.Context(), "0123456789abcdef")}) {
			if !errors.Is(call.Err, want) || !lease.Permanent(call.Err) {
				t.Errorf("%s: %s: got %v, want %v", when, call.Name, call.Err, want)
			}
		}
	}
	refused("a copy", lease.ErrMoved)

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
	s, _ = onServer(t, server)
	if _, err := s.MovedHere(ctx, until); err == nil {
		t.Error("it was not interrupted")
	}
	server.Accepts = nil
	s, _ = onServer(t, server)
	if _, err := s.Acquire(t.Context(), calls.Request(time.Now())); !errors.Is(err,
		lease.ErrRaising) {
		t.Errorf("acquire in between: %v", err)
	}
	if to, err := s.MovedHere(t.Context(), until); err != nil || to.Before(until) {
		t.Fatalf("raised to %s, %v", to, err)
	}
	s, _ = onServer(t, server)
	if _, err := s.Acquire(t.Context(), calls.Request(time.Now())); !errors.Is(err,
		lease.ErrNoFreeNode) {
		t.Errorf("before the leases of the original are over: %v", err)
	}
	if _, err := s.Acquire(t.Context(), calls.Request(until.Add(2*time.Second))); !errors.Is(err,
		lease.ErrClockAhead) {
		t.Errorf("after that: %v", err)
	}
	server.Place = "here"
	refused("the original", lease.ErrMoved)
}
