package engine_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// operation is a call with which operators begin a history.
type operation struct {
	earlier bool // the server has a store, with the ID storeID
	call    func(t *testing.T, s stores.Store, id string) error
	during  error // of processes until it is complete
	refused error // of a call with another ID
}

var operations = []operation{
	{false, func(t *testing.T, s stores.Store, id string) error {
		d := describe(few(8))
		d.ID, d.Secrets = id, []string{fingerprint}
		return s.Create(t.Context(), d)
	}, lease.ErrNoStore, lease.ErrExists},
	{true, func(t *testing.T, s stores.Store, id string) error {
		return s.Replace(t.Context(), storeID, id, fingerprint)
	}, lease.ErrReplacing, lease.ErrReplaced},
}

// before returns a server before the call, a client that knows its store, and a grant.
func (o operation) before(t *testing.T) (*counted, stores.Store, lease.Grant) {
	server := new(counted)
	if !o.earlier {
		return server, client(server, 2), block(0)
	}
	s := open(server, 2, few(8))
	return server, s, mustAcquire(t, s, request(t0))
}

// numbered returns a client that sends one request at a time, with on, and their number so far.
func numbered(server *counted, on func(n int, send func() error) error) (stores.Store, *int) {
	var mu sync.Mutex
	n := new(int)
	return client(wire{server, func(_ context.Context, _ string, send func() error) error {
		mu.Lock()
		defer mu.Unlock()
		*n++
		return on(*n, send)
	}}, 2), n
}

// killed returns a client that is killed after some requests.
func killed(server *counted, requests int) stores.Store {
	s, _ := numbered(server, func(n int, send func() error) error {
		if n > requests {
			return errLost
		}
		return send()
	})
	return s
}

// fill acquires every block of a store.
func fill(t *testing.T, server *counted, id string) (granted []lease.Grant) {
	t.Helper()
	r := request(t0)
	for r.Store = id; len(granted) < 8; r.Nonce = lease.NewNonce() {
		granted = append(granted, mustAcquire(t, client(server, 2), r))
	}
	_, err := client(server, 2).Acquire(t.Context(), r)
	wantErr(t, "acquire one more block", err, lease.ErrNoFreeNode)
	wantGrants(t, server, granted)
	return granted
}

func wantGrants(t *testing.T, server *counted, granted []lease.Grant) {
	t.Helper()
	blocks, err := client(server, 2).List(t.Context())
	for _, g := range granted {
		if err != nil || !slices.Contains(blocks, g) {
			t.Errorf("the grant %+v is not among %+v, %v", g, blocks, err)
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
	fill(t, server, id)
}

// A call that is interrupted at any request, or of which only that one fails, is completed by the
// same call. Once the description is written, nobody else can complete it, and no process acquires
// a block before that, neither a new one nor one that knows the store. A store that was restored to
// that moment, or whose new secret was lost, is replaced like any other.
func TestInterrupted(t *testing.T) {
	for _, o := range operations {
		for _, made := range []bool{false, true} {
			for _, fail := range []int{1, 1000} {
				for at := 1; o.interrupted(t, made, at, fail); at++ {
				}
			}
		}
	}
}

// interrupted reports whether the call has so many requests that some fail, from number at on.
func (o operation) interrupted(t *testing.T, made bool, at, fail int) bool {
	server, known, g := o.before(t)
	s, n := numbered(server, func(n int, send func() error) error {
		if n < at || n >= at+fail {
			return send()
		} else if n == at && made {
			_ = send()
		}
		return errLost
	})
	err := o.call(t, s, nextID)
	if *n < at {
		return false
	}
	wantErr(t, "the call", err, errLost)
	d, _ := client(server, 2).Describe(t.Context())
	config, _ := server.Read(t.Context(), "config")
	if d.ID == nextID && !strings.Contains(config.Version, `"Phase":"complete"`) {
		for name, s := range map[string]lease.Store{"a new": client(server, 2), "a known": known} {
			for _, r := range []lease.Request{request(t0), next(t0)} {
				_, err := s.Acquire(t.Context(), r)
				wantErr(t, name+" client acquires", err, o.during)
			}
			_, err = s.Describe(t.Context())
			wantErr(t, "describe", err, o.during)
		}
		wantErr(t, "another operator", o.call(t, client(server, 2), thirdID), o.refused)
		for _, other := range operations {
			if other.earlier != o.earlier {
				wantErr(t, "the other call", other.call(t, client(server, 2), nextID), o.during)
			}
		}
		restored := new(counted)
		load(t, restored, save(t, server))
		if err := client(restored, 2).Replace(t.Context(), nextID, thirdID,
			fingerprint); err != nil {
			t.Fatalf("interrupted at request %d, made %t, then restored: %v", at, made, err)
		}
		wantHistory(t, restored, thirdID, g)
	}
	for range 2 {
		if err := o.call(t, client(server, 2), nextID); err != nil {
			t.Fatalf("interrupted at request %d, made %t: %v", at, made, err)
		}
	}
	wantHistory(t, server, nextID, g)
	_, err = known.Renew(t.Context(), g, calls.Renewal(g))
	wantErr(t, "renew by a process that knows the earlier history", err, lease.ErrReplaced)
	return true
}

// Two operators make the call at once: the second one at any moment of the first one's, and leases
// are granted before the first one continues. With two IDs only one succeeds.
func TestOperatorsMeet(t *testing.T) {
	for _, o := range operations {
		for _, id := range []string{nextID, thirdID} {
			for at, met := 1, true; met; at++ {
				server, _, old := o.before(t)
				var granted []lease.Grant
				var second error
				s, n := numbered(server, func(n int, send func() error) error {
					if n == at {
						if second = o.call(t, client(server, 2), id); second == nil {
							granted = fill(t, server, id)
						}
					}
					return send()
				})
				first := o.call(t, s, nextID)
				met = *n >= at
				if failed := cmp.Or(first, second); met && (id == nextID && failed != nil ||
					id != nextID && (first != nil && second != nil ||
						!errors.Is(failed, o.refused))) {
					t.Errorf("request %d: %v and %v", at, first, second)
				}
				wantGrants(t, server, granted)
				_, err := client(server, 2).Renew(t.Context(), old, request(t0))
				wantErr(t, "renew", err, lease.ErrReplaced)
			}
		}
	}
}
