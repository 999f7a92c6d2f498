package engine_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/lease/memstore"
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
		strings.Contains(config.Version, `"Complete":true`)
	for _, call := range calls.OnBlocks(t.Context(), client(server, 2),
		lease.Grant{Nonce: protocol.NewNonce()}, t0) {
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
						granted = mustAcquire(t, s, request(t0))
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
				if got, err := client(server, 2).Get(t.Context(), granted.Node); err != nil ||
					got != granted {
					t.Errorf("request %d: the grant %+v is now %+v, %v", at, granted, got, err)
				}
			}
		}
	}
}

// Raises that are interrupted, repeated, and run by two operators at once are one raise. Once any
// of them is acknowledged, nothing before its time is granted.
func TestRaiseMeetsRaise(t *testing.T) {
	now := t0
	server := &counted{Objects: memstore.Objects{Clock: func() time.Time { return now }}}
	for at, met := 0, true; met; at++ {
		now = now.Add(2 * lease.MaxTTL) // the last raise is over
		until := now.Add(lease.MaxTTL)
		good, n := open(server, 2, few(8)), 0
		g := mustAcquire(t, good, request(now))
		var second time.Time
		_, err := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
			if n++; n != at+1 {
				return do()
			}
			var err error
			if second, err = good.Raise(t.Context(), until.Add(time.Hour)); err != nil {
				t.Error(err)
			}
			return answer{err: errLost}
		}}), 2).Raise(t.Context(), until)
		if met = n > at; met != errors.Is(err, errLost) || !met && err != nil {
			t.Errorf("request %d: %v", at, err)
		}
		now = now.Add(time.Hour)
		third, err := client(server, 2).Raise(t.Context(), until.Add(2*time.Hour))
		if err != nil || met && !third.Equal(second) {
			t.Errorf("request %d: raised to %s, and then to %s, %v", at, second, third, err)
		}
		_, err = good.Acquire(t.Context(), request(now))
		wantErr(t, "acquire", err, lease.ErrNoFreeNode)
		_, err = good.Renew(t.Context(), g, renewal(protocol.NewNonce(), until))
		wantErr(t, "renew", err, lease.ErrLost)
	}
}

// After a raise that was interrupted at any request, nobody is granted a block until it is
// repeated, neither a new process nor one that knows the store. Leases that are held continue.
func TestInterruptedRaise(t *testing.T) {
	for at := 0; ; at++ {
		server, n := new(counted), 0
		known, until := open(server, 2, few(8)), t0.Add(time.Hour)
		g := mustAcquire(t, known, request(t0))
		_, err := client(oneAtATime(wire{server, func(_ *message, do func() answer) answer {
			if n++; n == at+1 {
				return answer{err: errLost}
			}
			return do()
		}}), 2).Raise(t.Context(), until)
		if err == nil {
			return // it was not interrupted
		}
		wantErr(t, "raise", err, errLost)
		if _, err := known.Get(t.Context(), g.Node); err != nil {
			t.Errorf("request %d: get: %v", at, err)
		}
		if at >= 2 { // the mark was written
			_, err := known.Acquire(t.Context(), request(until.Add(time.Minute)))
			wantErr(t, "acquire", err, lease.ErrRaising)
			s := client(server, 2)
			_, err = s.Describe(t.Context())
			wantErr(t, "describe", err, lease.ErrRaising)
			_, err = s.Acquire(t.Context(), request(until.Add(time.Minute)))
			wantErr(t, "acquire by a new process", err, lease.ErrRaising)
		}
		if got, err := client(server, 2).Raise(t.Context(), until); err != nil ||
			!got.Equal(until) {
			t.Fatalf("request %d: repeated: %s, %v", at, got, err)
		}
		blocks, err := known.List(t.Context())
		lower := slices.ContainsFunc(blocks,
			func(b lease.Grant) bool { return b.End.Before(until) })
		if err != nil || len(blocks) != 8 || lower {
			t.Errorf("request %d: %+v, %v; want 8 blocks, raised to %s", at, blocks, err, until)
		}
		mustAcquire(t, known, request(until))
	}
}

// A process that has only described a store accepts a replacement by an operator. Once it has used
// a store, it refuses another.
func TestReplacedBeforeUse(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	server.Delete("")
	_, err := s.Describe(t.Context())
	wantErr(t, "describe", err, lease.ErrNoStore)
	if err := client(server, 2).Create(t.Context(), other()); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Describe(t.Context()); err != nil || d.ID != other().ID {
		t.Errorf("describe: %s, %v, want the new store", d.ID, err)
	}
	mustAcquire(t, s, request(t0))
	server.Delete("")
	_, err = s.Describe(t.Context())
	wantErr(t, "describe", err, lease.ErrReplaced)
	open(server, 2, few(8))
	_, err = s.Describe(t.Context())
	wantErr(t, "describe", err, lease.ErrReplaced)
}

// A raise is repeated only while nothing can have been granted after it, not even to a client that
// is as far ahead as the server's clock, which sends whole seconds, allows.
func TestRaiseIsOver(t *testing.T) {
	for left, over := range map[time.Duration]bool{
		30 * time.Second: true, protocol.MaxClockAhead + 100*time.Millisecond: true,
		protocol.MaxClockAhead + 2*time.Second: false,
	} {
		now := t0
		s := open(&counted{Objects: memstore.Objects{Clock: func() time.Time { return now }}}, 2,
			few(2))
		until, err := s.Raise(t.Context(), t0.Add(time.Hour))
		now = until.Add(-left)
		again, failed := s.Raise(t.Context(), now.Add(2*time.Hour))
		if err = errors.Join(err, failed); err != nil || over != again.After(until) {
			t.Errorf("%s before %s, to which the store was raised, it is raised to %s, %v", left,
				until, again, err)
		}
	}
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
				`the object "config" is gone: put it back`)
			says("create again", client(server, 2).Create(t.Context(), describe(few(8))),
				lease.ErrExists, "put it back")
			_, err := old.Raise(t.Context(), t0)
			says("raise", err, lease.ErrReplaced, `"config" is gone`)
			says("add secret", old.AddSecret(t.Context(), "0123456789abcdef"), lease.ErrReplaced)
		})
	})
	t.Run("one page", func(t *testing.T) {
		old, _ := lose("page-0002")
		wantWrites(t, "create again", server, 0, func() {
			says("create again", old.Create(t.Context(), describe(few(8))), lease.ErrReplaced,
				"page-0002", "put it back")
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
