package engine_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
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

// wantHistory checks that the store grants each block once under an ID, and nothing under others.
func wantHistory(t *testing.T, server *counted, id string, g lease.Grant) {
	t.Helper()
	s := client(server, 2)
	if d, err := s.Describe(t.Context()); err != nil || d.ID != id ||
		len(d.Secrets) != 1 || d.Secrets[0] != fingerprint {
		t.Fatalf("describe: %+v, %v; want the ID %s", d, err, id)
	}
	blocks, err := s.List(t.Context())
	if err != nil || len(blocks) != 0 {
		t.Errorf("list: %+v, %v; want no blocks", blocks, err)
	}
	for _, call := range calls.OnBlocks(t.Context(), s, g, t0) {
		if call.Name != "list" {
			wantErr(t, call.Name+" of the earlier history", call.Err, lease.ErrReplaced)
		}
	}
	for range 8 {
		r := request(t0)
		r.Store = id
		mustAcquire(t, s, r)
	}
}

// A replacement that is interrupted at any request, or of which only that one fails, is completed
// by the same call. Once the description is marked, nobody acquires a block before that, neither a
// new process nor one that knows the store.
func TestInterruptedReplace(t *testing.T) {
	for _, made := range []bool{false, true} {
		for _, fail := range []int{1, 1000} {
			for at, more := 0, true; more; at++ {
				more = interruptedReplace(t, made, at, fail)
			}
		}
	}
}

// interruptedReplace reports whether a replacement has so many requests that some fail.
func interruptedReplace(t *testing.T, made bool, at, fail int) bool {
	t.Helper()
	server, n := new(counted), 0
	known := open(server, 2, few(8))
	g := mustAcquire(t, known, request(t0))
	err := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
		if n++; n <= at || n > at+fail {
			return do()
		} else if n == at+1 && made {
			_ = do()
		}
		return answer{err: errLost}
	}}), 2).Replace(t.Context(), storeID, nextID, fingerprint)
	if n <= at {
		return false
	}
	wantErr(t, "replace", err, errLost)
	config, err := server.Read(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(config.Version, `"Phase":"replacing"`) {
		for name, s := range map[string]lease.Store{"a new": client(server, 2), "a known": known} {
			for _, r := range []lease.Request{request(t0), next(t0)} {
				_, err := s.Acquire(t.Context(), r)
				wantErr(t, name+" client acquires", err, lease.ErrReplacing)
			}
			_, err = s.Describe(t.Context())
			wantErr(t, "describe", err, lease.ErrReplacing)
		}
		wantErr(t, "create", client(server, 2).Create(t.Context(), describe(few(8))),
			lease.ErrExists)
		wantErr(t, "by another operator",
			client(server, 2).Replace(t.Context(), storeID, thirdID, fingerprint),
			lease.ErrReplaced)
	}
	for range 2 {
		if err := client(server, 2).Replace(t.Context(), storeID, nextID,
			fingerprint); err != nil {
			t.Fatalf("interrupted at request %d, made %t: %v", at, made, err)
		}
		if blocks, _ := known.List(t.Context()); len(blocks) > 0 {
			return true
		}
	}
	wantHistory(t, server, nextID, g)
	return true
}

// Two operators replace the secret at once: the second one at any moment of the first one's call,
// and leases are granted before the first one continues. With two secrets only one succeeds.
func TestReplaceMeetsReplace(t *testing.T) {
	for _, id := range []string{nextID, thirdID} {
		for at, met := 0, true; met; at++ {
			server, n := new(counted), 0
			old := mustAcquire(t, open(server, 2, few(8)), request(t0))
			var granted lease.Grant
			var second error
			first := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
				if n++; n == at+1 {
					s := client(server, 2)
					second = s.Replace(t.Context(), storeID, id, fingerprint)
					if second == nil {
						r := request(t0)
						r.Store = id
						granted = mustAcquire(t, s, r)
					}
				}
				return do()
			}}), 2).Replace(t.Context(), storeID, nextID, fingerprint)
			if met = n > at; !met {
				break
			}
			if failed := cmp.Or(first, second); id == nextID && failed != nil ||
				id != nextID && (first != nil && second != nil ||
					!errors.Is(failed, lease.ErrReplaced)) {
				t.Errorf("request %d: %v and %v", at, first, second)
			}
			if granted.Nonce != "" {
				got, err := client(server, 2).Get(t.Context(), granted)
				if err != nil || got != granted {
					t.Errorf("request %d: the grant %+v is now %+v, %v", at, granted, got, err)
				}
			}
			_, err := client(server, 2).Renew(t.Context(), old, renewal(lease.NewNonce(), t0))
			wantErr(t, "renew", err, lease.ErrReplaced)
		}
	}
}

// One backup is restored twice. The first operator's call, which stopped at any moment of it,
// continues when the second one's history is in use, and changes nothing in it.
func TestReplaceAfterAnotherRestore(t *testing.T) {
	for at, met := 0, true; met; at++ {
		server, n := new(counted), 0
		mustAcquire(t, open(server, 2, few(8)), request(t0))
		backup := save(t, server)
		var granted []lease.Grant
		err := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
			if n++; n == at+1 {
				load(t, server, backup)
				s := client(server, 2)
				if err := s.Replace(t.Context(), storeID, thirdID, fingerprint); err != nil {
					t.Fatal(err)
				}
				for range 8 {
					r := request(t0)
					r.Store = thirdID
					granted = append(granted, mustAcquire(t, s, r))
				}
			}
			return do()
		}}), 2).Replace(t.Context(), storeID, nextID, fingerprint)
		if met = n > at; met {
			wantErr(t, "the first replacement", err, lease.ErrReplaced)
		}
		for _, g := range granted {
			got, err := client(server, 2).Get(t.Context(), g)
			if err != nil || got != g {
				t.Errorf("request %d: the grant %+v is now %+v, %v", at, g, got, err)
			}
		}
	}
}

// A store that was restored to the middle of its creation is replaced like any other.
func TestReplaceUnfinishedStore(t *testing.T) {
	for made := 1; made < 6; made++ {
		server, n := new(counted), 0
		half := client(writes(server, func(_ *message, do func() answer) answer {
			if n++; n > made {
				return answer{err: errLost}
			}
			return do()
		}), 2)
		wantErr(t, "create", half.Create(t.Context(), describe(few(8))), errLost)
		if err := client(server, 2).Replace(t.Context(), storeID, nextID,
			fingerprint); err != nil {
			t.Fatalf("after %d writes: %v", made, err)
		}
		wantHistory(t, server, nextID, block(0))
	}
}

// A secret that was lost while it was being introduced is replaced by its ID, like any other. A
// store with another ID is left alone.
func TestReplaceAgain(t *testing.T) {
	server, lost := new(counted), true
	s := open(server, 2, few(8))
	g := mustAcquire(t, s, request(t0))
	half := client(writes(server, func(m *message, do func() answer) answer {
		if m.name != "config" && lost {
			return answer{err: errLost}
		}
		return do()
	}), 2)
	wantErr(t, "replace", half.Replace(t.Context(), storeID, nextID, fingerprint), errLost)
	wantErr(t, "another ID", s.Replace(t.Context(), thirdID, storeID, fingerprint),
		lease.ErrReplaced)
	wantErr(t, "no ID", s.Replace(t.Context(), "", thirdID, fingerprint), lease.ErrInvalidRequest)
	if err := s.Replace(t.Context(), nextID, thirdID, fingerprint); err != nil {
		t.Fatal(err)
	}
	wantHistory(t, server, thirdID, g)
}
