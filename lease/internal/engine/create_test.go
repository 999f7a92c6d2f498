package engine_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/lease/stores"
)

// other describes another store.
func other() lease.Description {
	d := describe(few(8))
	d.ID = strings.Repeat("f", 32)
	return d
}

// A creation that is interrupted at any request, or of which only that one fails, is finished only
// by the same command.
func TestInterruptedCreate(t *testing.T) {
	for _, made := range []bool{false, true} {
		for _, fail := range []int{1, 1000} {
			for at := 0; interruptedCreate(t, made, at, fail); at++ {
			}
		}
	}
}

// interruptedCreate reports whether a creation has so many requests that some fail, from one on.
func interruptedCreate(t *testing.T, made bool, at, fail int) bool {
	t.Helper()
	server, n := new(counted), 0
	err := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
		if n++; n <= at || n > at+fail {
			return do()
		} else if n == at+1 && made {
			_ = do()
		}
		return answer{err: errLost}
	}}), 2).Create(t.Context(), describe(few(8)))
	if n <= at {
		return false
	}
	wantErr(t, "create", err, errLost)
	config, err := server.Read(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	begun, complete := config.Version != "",
		strings.Contains(config.Version, `"Phase":"complete"`)
	for _, call := range calls.OnBlocks(t.Context(), client(server, 2),
		lease.Grant{Store: storeID, Nonce: lease.NewNonce()}, t0) {
		if !complete {
			wantErr(t, call.Name, call.Err, lease.ErrNoStore)
		}
	}
	if d, err := client(server, 2).Describe(t.Context()); (d.ID == storeID) != begun ||
		!complete && !errors.Is(err, lease.ErrNoStore) {
		t.Errorf("describe: %+v, %v", d, err)
	}
	if begun {
		wantErr(t, "create another", client(server, 2).Create(t.Context(), other()),
			lease.ErrExists)
	}
	for range 2 {
		if err := client(server, 2).Create(t.Context(), describe(few(8))); err != nil {
			t.Fatalf("interrupted at request %d, made %t: %v", at, made, err)
		}
	}
	if s := client(server, 2); !complete {
		for range 8 {
			mustAcquire(t, s, request(t0))
		}
		_, err := s.Acquire(t.Context(), request(t0))
		wantErr(t, "one more acquire", err, lease.ErrNoFreeNode)
	}
	return true
}

// Two operators create a store at once: the second one at any moment of the first one's creation,
// and leases are granted before the first one continues.
func TestCreateMeetsCreate(t *testing.T) {
	for _, d := range []lease.Description{describe(few(8)), other()} {
		for at, met := 0, true; met; at++ {
			server, n := new(counted), 0
			var granted lease.Grant
			var second error
			first := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
				if n++; n == at+1 {
					s := client(server, 2)
					if second = s.Create(t.Context(), d); second == nil {
						r := request(t0)
						r.Store = d.ID
						granted = mustAcquire(t, s, r)
					}
				}
				return do()
			}}), 2).Create(t.Context(), describe(few(8)))
			if met = n > at; met && d.ID == storeID && (first != nil || second != nil) {
				t.Errorf("request %d: %v and %v, want both to succeed", at, first, second)
			} else if failed := cmp.Or(first, second); met && d.ID != storeID &&
				(first != nil && second != nil || !errors.Is(failed, lease.ErrExists)) {
				t.Errorf("request %d: %v and %v, want one of them to succeed, and %v", at, first,
					second, lease.ErrExists)
			}
			if granted.Nonce != "" {
				if got, err := client(server, 2).Get(t.Context(), granted); err != nil ||
					got != granted {
					t.Errorf("request %d: the grant %+v is now %+v, %v", at, granted, got, err)
				}
			}
		}
	}
}

// A page of another store that appears during a creation is not taken over.
func TestCreateMeetsForeignPage(t *testing.T) {
	server, elsewhere := new(counted), new(counted)
	if err := client(elsewhere, 2).Create(t.Context(), other()); err != nil {
		t.Fatal(err)
	}
	page, err := elsewhere.Read(t.Context(), "page-0001")
	if err != nil {
		t.Fatal(err)
	}
	err = client(writes(server, func(m *message, do func() answer) answer {
		if m.name == "page-0001" {
			_, _ = server.Write(m.ctx, m.name, page.Data, "")
		}
		return do()
	}), 2).Create(t.Context(), describe(few(8)))
	wantErr(t, "create", err, lease.ErrReplaced)
	_, err = client(server, 2).Describe(t.Context())
	wantErr(t, "describe", err, lease.ErrNoStore)
}

// Where objects are lost, nothing is created again, and the error says what to do.
func TestLostObjects(t *testing.T) {
	server := &counted{}
	lose := func(prefix string) (old stores.Store, g lease.Grant) {
		server.Delete("")
		old = open(server, 2, few(8))
		g = mustAcquire(t, old, request(t0))
		server.Delete(prefix)
		return old, g
	}
	says := func(what string, err, want error, texts ...string) {
		t.Helper()
		wantErr(t, what, err, want)
		for _, text := range texts {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v does not say %q", what, err, text)
			}
		}
	}
	t.Run("the configuration", func(t *testing.T) {
		old, g := lose("config")
		_ = mustRenew(t, old, g) // whoever knows the nonce may renew
		wantWrites(t, "new clients", server, 0, func() {
			for _, call := range calls.OnBlocks(t.Context(), client(server, 2), g, t0) {
				says(call.Name, call.Err, lease.ErrNoStore)
			}
			says("create", client(server, 2).Create(t.Context(), other()), lease.ErrExists,
				`the object "config" is gone`)
			says("create again", client(server, 2).Create(t.Context(), describe(few(8))),
				lease.ErrExists, "is gone")
			says("add secret", old.AddSecret(t.Context(), storeID, fingerprint), lease.ErrNoStore)
			says("replace", old.Replace(t.Context(), storeID, nextID, fingerprint),
				lease.ErrNoStore)
		})
	})
	t.Run("one page", func(t *testing.T) {
		old, _ := lose("page-0002")
		wantWrites(t, "create again", server, 0, func() {
			says("create again", old.Create(t.Context(), describe(few(8))), driver.ErrEdited,
				"page-0002 is gone")
		})
		_, err := old.Get(t.Context(), block(2*2*8))
		says("get", err, driver.ErrEdited, "page-0002 is gone")
		for range 20 {
			if g, err := old.Acquire(t.Context(), request(t0)); err != nil {
				says("acquire", err, driver.ErrEdited, "page-0002")
			} else if g.Node/16 == 2 {
				t.Errorf("granted %+v of a page that is gone", g)
			}
		}
		_, err = old.List(t.Context())
		says("list", err, driver.ErrEdited, "page-0002")
		// It is not needed for a new history.
		if err := old.Replace(t.Context(), storeID, nextID, fingerprint); err != nil {
			t.Error(err)
		}
	})
}

// A change that others always precede ends with an error, even if its context has no deadline.
func TestOthersAlwaysWriteFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counted{}
		n, written := 0, regexp.MustCompile(`"Writes":\d+`)
		s := client(oneAtATime(writes(server, func(m *message, do func() answer) answer {
			if n++; m.version != "" {
				o, _ := server.Read(m.ctx, m.name)
				o.Data = engine.Sealed(
					written.ReplaceAll(o.Data, fmt.Appendf(nil, `"Writes":%d`, 100+n)))
				_, _ = server.Write(m.ctx, m.name, o.Data, o.Version)
			}
			return do()
		})), 2)
		for _, c := range []struct {
			object string
			writes int
			call   func() error
		}{
			// 50 pages, which are there
			{"config", 1 + 50 + 50,
				func() error { return s.Create(t.Context(), describe(few(2))) }},
			{"page-0000", 50,
				func() error { _, err := s.Acquire(t.Context(), request(t0)); return err }},
		} {
			n = 0
			if err := c.call(); err == nil ||
				!strings.Contains(err.Error(),
					c.object+": another client wrote it first in each of 50 attempts") ||
				n != c.writes {
				t.Errorf("%v after %d writes, want an error after %d", err, n, c.writes)
			}
			if c.object == "config" { // another operator finishes it
				if err := client(server, 2).Create(t.Context(), describe(few(2))); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// The data that a server says it stored is compared with the data sent.
func TestOtherAnswers(t *testing.T) {
	for name, o := range map[string]func(m *message) driver.Object{
		// as a webhook may keep it
		"the old data": func(m *message) driver.Object {
			return driver.Object{Version: "next", Data: []byte(m.version)}
		},
		"the old version": func(m *message) driver.Object {
			return driver.Object{Version: m.version}
		},
		"no object": func(*message) driver.Object { return driver.Object{} },
	} {
		server := &counted{}
		open(server, 2, few(2))
		s := client(writes(server, func(m *message, _ func() answer) answer {
			return answer{object: o(m)}
		}), 2)
		_, err := s.Acquire(t.Context(), request(t0))
		wantErr(t, name, err, engine.ErrAltered)
		wantUnknown(t, name, err)
	}
	wantErr(t, "create with a probe",
		probed(t.Context(), writes(&counted{}, func(m *message, do func() answer) answer {
			m.data = bytes.ToUpper(m.data)
			a := do()
			a.object.Data = m.data
			return a
		})), engine.ErrAltered)
	// Create detects a server that returns nothing and stores nothing.
	swallows := client(writes(&counted{}, func(*message, func() answer) answer {
		return answer{object: driver.Object{Version: "next"}}
	}), 2)
	wantErr(t, "create", swallows.Create(t.Context(), other()), lease.ErrMisconfigured)
}

func TestLayout(t *testing.T) {
	for perPage, good := range map[uint32]bool{0: false, 1: true, 1 << 17: true, 1<<17 + 1: false,
		1<<32 - 1: false} {
		_, err := stores.New(&counted{}, driver.Layout{Name: "teststore", BlocksPerPage: perPage})
		if good {
			mustAcquire(t,
				open(&counted{}, perPage, lease.Description{Nodes: 1 << 17, BlockSize: 1 << 12}),
				request(t0))
		} else {
			wantErr(t, fmt.Sprint(perPage, " blocks on a page"), err, lease.ErrInvalidRequest)
		}
	}
}
