package engine_test

import (
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// A copy of a store in another place refuses every call, also of a client that holds a lease of the
// original, which may grant the block to others later. It gets a secret of its own, and the
// original continues.
func TestMoved(t *testing.T) {
	server := &counted{Place: "here"}
	s := open(server, 2, few(8))
	g := mustAcquire(t, s, request(t0))
	backup := save(t, server)
	server.Place = "elsewhere"
	wantWrites(t, "in a copy", server, 0, func() {
		for _, s := range []stores.Store{s, client(server, 2)} {
			for _, call := range calls.OnBlocks(t.Context(), s, g, t0) {
				wantErr(t, call.Name, call.Err, lease.ErrMoved)
			}
		}
		wantErr(t, "create", client(server, 2).Create(t.Context(), describe(few(8))),
			lease.ErrMoved)
		wantErr(t, "add secret", s.AddSecret(t.Context(), storeID, fingerprint), lease.ErrMoved)
	})
	if err := client(server, 2).Replace(t.Context(), storeID, nextID, fingerprint); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, next(t0))

	original := &counted{Place: "here"}
	load(t, original, backup)
	g = mustRenew(t, client(original, 2), g)

	// Another store in another place is no copy.
	server.Place = "a third place"
	server.Delete("")
	if err := client(server, 2).Create(t.Context(), other()); err != nil {
		t.Fatal(err)
	}
	_, err := s.Renew(t.Context(), g, request(t0))
	wantErr(t, "renew in another store", err, lease.ErrReplaced)
}

// A creation is interrupted at any request, and what it wrote is copied to another place. Only one
// of the two is completed, unless the description was copied before its second write.
func TestIncompleteStoreIsCopied(t *testing.T) {
	for requests, done := 0, false; !done; requests++ {
		server := &counted{Place: "here"}
		done = killed(server, requests).Create(t.Context(), describe(few(8))) == nil
		copied := &counted{Place: "elsewhere"}
		load(t, copied, save(t, server))
		begun := server.Writes > 1
		if err := client(server, 2).Create(t.Context(), describe(few(8))); err != nil {
			t.Fatal(err)
		}
		err := client(copied, 2).Create(t.Context(), describe(few(8)))
		if begun {
			wantErr(t, "complete the copy", err, lease.ErrMoved)
		}
	}
}
