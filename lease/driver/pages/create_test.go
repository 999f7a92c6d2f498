package pages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

// other describes another store.
func other(blocks uint32) lease.Description {
	d := describe(few(blocks))
	d.ID = strings.Repeat("f", 32)
	return d
}

// wantStore checks that a server has a complete store that grants each of its blocks once.
func wantStore(t *testing.T, server pages.Server, id string, blocks int) {
	t.Helper()
	s := client(server, 2)
	if d, err := s.Describe(t.Context()); err != nil || d.ID != id {
		t.Fatalf("describe: %+v, %v; want %s", d, err, id)
	}
	granted := map[uint32]bool{}
	for range blocks {
		granted[mustAcquire(t, s, request(t0)).Node] = true
	}
	_, err := s.Acquire(t.Context(), request(t0))
	if wantErr(t, "one more acquire", err, lease.ErrNoFreeNode); len(granted) != blocks {
		t.Errorf("%d different blocks are granted, want %d", len(granted), blocks)
	}
}

// A creation that is interrupted at any write is finished by the same command, and by nothing else.
func TestInterruptedCreate(t *testing.T) {
	const blocks, writesOfCreate = 8, 6 // 4 pages, and the configuration twice
	for _, made := range []bool{false, true} {
		for at := range writesOfCreate {
			t.Run(fmt.Sprintf("write %d, made %t", at, made), func(t *testing.T) {
				server := &pagestest.Server{}
				n := 0
				interrupted := client(oneAtATime(writes(server, func(_ *message, do func() answer) answer {
					if n++; n-1 < at {
						return do()
					} else if n-1 == at && made {
						_ = do()
					}
					return answer{err: errLost}
				})), 2)
				wantErr(t, "create", interrupted.Create(t.Context(), describe(few(blocks))), errLost)
				complete := at == writesOfCreate-1 && made
				begun := at > 0 || made
				for call, err := range everyCall(t, client(server, 2), lease.Grant{Nonce: lease.NewNonce()}) {
					if !complete {
						wantErr(t, call, err, lease.ErrNoStore)
					}
				}
				d, err := client(server, 2).Describe(t.Context())
				if (d.ID == storeID) != begun || !complete && !errors.Is(err, lease.ErrNoStore) {
					t.Errorf("describe: %+v, %v", d, err)
				}
				if begun {
					wantErr(t, "create another", client(server, 2).Create(t.Context(), other(4)), lease.ErrExists)
				}
				for range 2 {
					if err := client(server, 2).Create(t.Context(), describe(few(blocks))); err != nil {
						t.Fatal(err)
					}
				}
				if !complete {
					wantStore(t, server, storeID, blocks)
				}
			})
		}
	}
}

// Two operators create a store at once: the second one does at any moment of the first one's
// creation, and leases are granted before the first one goes on.
func TestCreateMeetsCreate(t *testing.T) {
	const blocks = 8
	for _, same := range []bool{true, false} {
		for at, met := 0, true; met; at++ {
			server := &pagestest.Server{}
			d, n := other(blocks), 0
			if same {
				d = describe(few(blocks))
			}
			var granted lease.Grant
			var second error
			first := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
				if n++; n-1 == at {
					s := client(server, 2)
					if second = s.Create(t.Context(), d); second == nil {
						granted = mustAcquire(t, s, request(t0))
					}
				}
				return do()
			}}), 2)
			err := first.Create(t.Context(), describe(few(blocks)))
			met = n > at
			switch {
			case !met:
			case same && (err != nil || second != nil):
				t.Errorf("request %d: %v and %v, want both to succeed", at, err, second)
			case !same && (err == nil) == (second == nil):
				t.Errorf("request %d: %v and %v, want one of them to succeed", at, err, second)
			case !same:
				for _, err := range []error{err, second} {
					if err != nil {
						wantErr(t, "create", err, lease.ErrExists)
					}
				}
			}
			if granted.Nonce != "" {
				got, err := client(server, 2).Get(t.Context(), granted.Node)
				if err != nil || got != granted {
					t.Errorf("request %d: the grant %+v is now %+v, %v", at, granted, got, err)
				}
			}
		}
	}
}

// Raises that are interrupted, repeated, and made by two operators at once are one raise. Nothing
// before its time is granted once one of them is acknowledged.
func TestRaiseMeetsRaise(t *testing.T) {
	now := t0
	server := &pagestest.Server{Now: func() time.Time { return now }}
	until := t0.Add(lease.MaxTTL)
	for at := range 12 {
		now = t0.Add(time.Duration(at) * 2 * lease.MaxTTL) // the last raise is over
		until = now.Add(lease.MaxTTL)
		good, n := open(server, 2, few(8)), 0
		g := mustAcquire(t, good, request(now))
		var second time.Time
		bad := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
			if n++; n-1 == at {
				var err error
				if second, err = good.Raise(t.Context(), until.Add(time.Hour)); err != nil {
					t.Error(err)
				}
				return answer{err: errLost}
			}
			return do()
		}}), 2)
		_, err := bad.Raise(t.Context(), until)
		if met := n > at; met && !errors.Is(err, errLost) {
			t.Errorf("request %d: %v", at, err)
		} else if !met && err != nil {
			t.Error(err)
		}
		now = now.Add(time.Hour)
		third, err := client(server, 2).Raise(t.Context(), until.Add(2*time.Hour))
		if err != nil || !second.IsZero() && !third.Equal(second) {
			t.Errorf("request %d: raised to %s, and then to %s, %v", at, second, third, err)
		}
		_, err = good.Acquire(t.Context(), request(now))
		wantErr(t, "acquire", err, lease.ErrNoFreeNode)
		_, err = good.Renew(t.Context(), g, renewal(lease.NewNonce(), until))
		wantErr(t, "renew", err, lease.ErrLost)
	}
}

// A raise goes by the server's clock. It is repeated only while nothing can have been granted after it, not even to a client that is
// ahead.
func TestRaiseIsOver(t *testing.T) {
	for _, left := range []time.Duration{30 * time.Second, lease.MaxClockAhead, lease.MaxClockAhead + 100*time.Millisecond} {
		now := t0
		server := &pagestest.Server{Now: func() time.Time { return now }}
		s := open(server, 2, few(2))
		until, err := s.Raise(t.Context(), t0.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		backup, err := server.Read(t.Context(), "page-0000")
		if err != nil {
			t.Fatal(err)
		}
		now = until.Add(-left)
		g := mustAcquire(t, s, request(until))
		changed, err := server.Read(t.Context(), "page-0000")
		if err == nil {
			_, err = server.Write(t.Context(), "page-0000", backup.Data, changed.Version)
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Raise(t.Context(), now.Add(2*time.Hour))
		if err != nil || again.Before(g.End) {
			t.Errorf("%s before the end of a raise, after a grant until %s was forgotten: raised to %s, %v", left, g.End, again, err)
		}
	}
}

// Where objects are lost, nothing is created again, and the error says what to do.
func TestLostObjects(t *testing.T) {
	server := &pagestest.Server{}
	lose := func(prefix string) (old driver.Store, g lease.Grant) {
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
		_ = mustRenew(t, old, g) // whoever knows it goes on
		wantWrites(t, "new clients", server, 0, func() {
			for call, err := range everyCall(t, client(server, 2), g) {
				says(call, err, lease.ErrNoStore)
			}
			says("create", client(server, 2).Create(t.Context(), other(8)), lease.ErrExists, `the object "config" is gone: put it back`)
			says("create again", client(server, 2).Create(t.Context(), describe(few(8))), lease.ErrExists, "put it back")
			_, err := old.Raise(t.Context(), t0)
			says("raise", err, lease.ErrReplaced, `"config" is gone`)
			says("add secret", old.AddSecret(t.Context(), "0123456789abcdef"), lease.ErrReplaced)
		})
	})
	t.Run("one page", func(t *testing.T) {
		old, _ := lose("page-0002")
		wantWrites(t, "create again", server, 0, func() {
			if err := old.Create(t.Context(), describe(few(8))); err != nil {
				t.Error(err)
			}
		})
		_, err := old.Get(t.Context(), 2*2*8)
		says("get", err, lease.ErrReplaced, "page-0002", "put it back")
		for range 20 {
			if g, err := old.Acquire(t.Context(), request(t0)); err != nil {
				says("acquire", err, lease.ErrReplaced, "page-0002")
			} else if g.Node/16 == 2 {
				t.Errorf("granted %+v of a page that is gone", g)
			}
		}
		_, err = old.List(t.Context())
		says("list", err, lease.ErrReplaced, "page-0002")
		_, err = old.Raise(t.Context(), t0.Add(time.Hour))
		says("raise", err, lease.ErrReplaced, "page-0002")
	})
	t.Run("everything", func(t *testing.T) {
		old, g := lose("")
		wantWrites(t, "an empty server", server, 0, func() {
			for call, err := range everyCall(t, old, g) {
				says(call, err, lease.ErrReplaced)
			}
			says("create", old.Create(t.Context(), other(8)), lease.ErrReplaced)
			for call, err := range everyCall(t, client(server, 2), g) {
				says(call, err, lease.ErrNoStore, "traceflake lease create")
			}
		})
	})
}

// A change that others always precede ends with an error, even if its context has no deadline.
func TestOthersAlwaysWriteFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &pagestest.Server{}
		n := 0
		s := client(oneAtATime(writes(server, func(m *message, do func() answer) answer {
			if n++; m.version != "" {
				o, _ := server.Read(m.ctx, m.name)
				o.Data = pages.Edit(o.Data, func(o map[string]any) { o["Writes"] = 100 + n })
				_, _ = server.Write(m.ctx, m.name, o.Data, o.Version)
			}
			return do()
		})), 2)
		for _, c := range []struct {
			object string
			writes int
			call   func() error
		}{
			{"config", 1 + 50 + 50, func() error { return s.Create(t.Context(), describe(few(2))) }}, // 50 pages, which are there
			{"page-0000", 50, func() error { _, err := s.Acquire(t.Context(), request(t0)); return err }},
		} {
			n = 0
			if err := c.call(); err == nil || !strings.Contains(err.Error(), c.object+": others wrote it before each of 50 tries") || n != c.writes {
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

// What a server says that it stored is compared with what was sent.
func TestOtherAnswers(t *testing.T) {
	for name, o := range map[string]func(m *message) pages.Object{
		"the old data":    func(m *message) pages.Object { return pages.Object{Version: "next", Data: []byte(m.version)} }, // as a webhook may keep it
		"the old version": func(m *message) pages.Object { return pages.Object{Version: m.version} },
		"no object":       func(*message) pages.Object { return pages.Object{} },
	} {
		server := &pagestest.Server{}
		open(server, 2, few(2))
		s := client(writes(server, func(m *message, _ func() answer) answer { return answer{object: o(m)} }), 2)
		_, err := s.Acquire(t.Context(), request(t0))
		wantErr(t, name, err, pages.ErrAltered)
		wantUnknown(t, name, err)
	}
	// Create does not try such a server for ever.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	wantErr(t, "create with a probe", probed(ctx, writes(&pagestest.Server{}, func(m *message, do func() answer) answer {
		m.data = bytes.ToUpper(m.data)
		a := do()
		a.object.Data = m.data
		return a
	})), pages.ErrAltered)
	if ctx.Err() != nil {
		t.Error("it tries until its context ends")
	}
	// One that says nothing, and stores nothing, is found out by Create.
	swallows := client(writes(&pagestest.Server{}, func(*message, func() answer) answer {
		return answer{object: pages.Object{Version: "next"}}
	}), 2)
	wantErr(t, "create", swallows.Create(t.Context(), other(2)), lease.ErrMisconfigured)
}

func TestLayout(t *testing.T) {
	for perPage, good := range map[uint32]bool{0: false, 1: true, 64: true, 1 << 17: true, 1<<17 + 1: false, 1 << 20: false, 1<<32 - 1: false} {
		s, err := pages.New(&pagestest.Server{}, pages.Layout{Name: "teststore", BlocksPerPage: perPage})
		if !good {
			wantErr(t, fmt.Sprint(perPage, " blocks on a page"), err, lease.ErrInvalidRequest)
			continue
		}
		d := describe(driver.NodeRange{Nodes: 1 << 17, BlockSize: 1 << 12})
		if err = errors.Join(err, s.Create(t.Context(), d)); err != nil {
			t.Errorf("%d blocks on a page: %v", perPage, err)
		}
		mustAcquire(t, s, request(t0))
	}
}
