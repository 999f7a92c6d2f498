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
		wantGrants(t, server, granted)
	}
}

// A store with another ID is left alone.
func TestReplaceAnotherStore(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	wantWrites(t, "replace", server, 0, func() {
		for _, c := range []struct {
			old, id, fingerprint string
			want                 error
		}{
			{thirdID, nextID, fingerprint, lease.ErrReplaced},
			{"", nextID, fingerprint, lease.ErrInvalidRequest},
			{storeID, "", fingerprint, lease.ErrInvalidRequest},
			{storeID, nextID, "", lease.ErrInvalidRequest},
		} {
			wantErr(t, "replace", s.Replace(t.Context(), c.old, c.id, c.fingerprint), c.want)
		}
	})
}
