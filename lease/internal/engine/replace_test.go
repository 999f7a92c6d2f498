package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

const fingerprint = "0123456789abcdef"

var nextID, thirdID = strings.Repeat("e", 32), strings.Repeat("d", 32)

// next is a request to the history after the first.
func next(now time.Time) lease.Request {
	r := request(now)
	r.Store = nextID
	return r
}

// block is the grant of a block that was never granted.
func block(node uint32) lease.Grant {
	return lease.Grant{Store: storeID, Lease: randflake.Lease{Node: node, Nodes: 8}}
}

// save returns a backup of a server.
func save(t *testing.T, server *counted) map[string]driver.Object {
	t.Helper()
	all, err := server.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// load restores a backup.
func load(t *testing.T, server *counted, backup map[string]driver.Object) {
	t.Helper()
	server.Delete("")
	for name, o := range backup {
		if _, err := server.Write(t.Context(), name, o.Data, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// One backup is restored twice. The first operator's call, which stopped at any moment of it,
// continues when the second one's history is in use, and changes nothing in it.
func TestReplaceAfterAnotherRestore(t *testing.T) {
	for at, met := 1, true; met; at++ {
		server := new(counted)
		mustAcquire(t, open(server, 2, few(8)), request(t0))
		backup := save(t, server)
		var granted []lease.Grant
		s, n := numbered(server, func(n int, send func() error) error {
			if n == at {
				load(t, server, backup)
				if err := client(server, 2).Replace(t.Context(), storeID, thirdID,
					fingerprint); err != nil {
					t.Fatal(err)
				}
				granted = fill(t, server, thirdID)
			}
			return send()
		})
		err := s.Replace(t.Context(), storeID, nextID, fingerprint)
		if met = *n >= at; met {
			wantErr(t, "the first replacement", err, lease.ErrReplaced)
		}
		wantGrants(t, server, granted...)
	}
}

// A store that was restored to the middle of its creation is replaced like any other.
func TestReplaceUnfinishedStore(t *testing.T) {
	for requests := 3; requests < 10; requests++ {
		server := new(counted)
		_ = killed(server, requests).Create(t.Context(), describe(few(8)))
		if err := client(server, 2).Replace(t.Context(), storeID, nextID,
			fingerprint); err != nil {
			t.Fatalf("after %d requests: %v", requests, err)
		}
		wantHistory(t, server, nextID, block(0))
	}
}

// A secret that was lost while it was being introduced is replaced by its ID, like any other. A
// store with another ID is left alone.
func TestReplaceAgain(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	g := mustAcquire(t, s, request(t0))
	wantErr(t, "replace", killed(server, 3).Replace(t.Context(), storeID, nextID, fingerprint),
		errLost)
	wantErr(t, "another ID", s.Replace(t.Context(), thirdID, storeID, fingerprint),
		lease.ErrReplaced)
	wantErr(t, "no ID", s.Replace(t.Context(), "", thirdID, fingerprint), lease.ErrInvalidRequest)
	if err := s.Replace(t.Context(), nextID, thirdID, fingerprint); err != nil {
		t.Fatal(err)
	}
	wantHistory(t, server, thirdID, g)
}
