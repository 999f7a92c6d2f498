package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

// numbered returns a client that sends one request at a time, with on, and their number so far.
func numbered(server *counted, on func(n int, request string, send func() error) error) (
	stores.Store, *int) {
	turn, n := make(chan struct{}, 1), new(int) // not a mutex, for synctest
	return client(wire{server, func(_ context.Context, request string, send func() error) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		*n++
		return on(*n, request, send)
	}}, 2), n
}

// killed returns a client that is killed after some requests.
func killed(server *counted, requests int) stores.Store {
	s, _ := numbered(server, func(n int, _ string, send func() error) error {
		if n > requests {
			return errLost
		}
		return send()
	})
	return s
}

// beginning is a call that begins a history.
type beginning struct {
	earlier bool // the server has a store
	call    func(t *testing.T, s stores.Store, leaves lease.Description) (lease.Description, error)
	during  error // of processes until it is complete
	refused error // of a call that finds another history
}

var beginnings = []beginning{
	{false, func(t *testing.T, s stores.Store, _ lease.Description) (lease.Description, error) {
		return s.Create(t.Context(), few(8), calls.Secret())
	}, lease.ErrNoStore, lease.ErrExists},
	{true, func(t *testing.T, s stores.Store, d lease.Description) (lease.Description, error) {
		return s.Begin(t.Context(), calls.Begin(d, lease.Contradicted))
	}, lease.ErrBeginning, lease.ErrHistory},
}

// before returns a server before the call, a client that knows its store, and a grant.
func (b beginning) before(t *testing.T) (*counted, opened, lease.Grant) {
	server := new(counted)
	if !b.earlier {
		s := opened{client(server, 2), lease.Description{}}
		return server, s, s.block(0)
	}
	s := open(server, 2, few(8))
	return server, s, mustAcquire(t, s, s.request(t0))
}

// fill acquires every block of a store, which grants each once.
func fill(t *testing.T, server *counted, id string) (granted []lease.Grant) {
	t.Helper()
	for len(granted) < 8 {
		granted = append(granted, mustAcquire(t, client(server, 2), calls.Request(id, t0)))
	}
	_, err := client(server, 2).Acquire(t.Context(), calls.Request(id, t0))
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

// A call that is interrupted at any request, or of which only that one fails, is not completed by
// anybody: the next call begins another history. No process acquires a block before that, neither a
// new one nor one that knows the store.
func TestInterrupted(t *testing.T) {
	for _, b := range beginnings {
		for _, made := range []bool{false, true} {
			for _, fail := range []int{1, 1000} {
				for at, more := 1, true; more; at++ {
					synctest.Test(t, func(t *testing.T) { more = b.interrupted(t, made, at, fail) })
				}
			}
		}
	}
}

// interrupted reports whether the call has so many requests that some fail, from number at on.
func (b beginning) interrupted(t *testing.T, made bool, at, fail int) bool {
	server, known, g := b.before(t)
	s, n := numbered(server, func(n int, _ string, send func() error) error {
		if n < at || n >= at+fail {
			return send()
		} else if n == at && made {
			_ = send()
		}
		return errLost
	})
	_, err := b.call(t, s, known.Description)
	if *n < at {
		return false
	}
	wantErr(t, "the call", err, errLost)
	now, err := client(server, 2).Describe(t.Context())
	what := fmt.Sprintf("interrupted at request %d, made %t", at, made)
	if errors.Is(err, b.during) {
		for _, s := range []lease.Store{client(server, 2), known} {
			for _, id := range []string{known.ID, now.ID} {
				_, err := s.Acquire(t.Context(), calls.Request(id, t0))
				if err == nil || !errors.Is(err, b.during) && !errors.Is(err,
					lease.ErrContradicted) {
					t.Errorf("%s: acquire: %v", what, err)
				}
			}
		}
	}
	next, err := b.call(t, client(server, 2), known.Description)
	switch {
	case now.ID != known.ID && errors.Is(err, b.refused) && next.ID == now.ID:
		// complete, without its caller's knowledge
	case err != nil || next.ID == now.ID || next.ID == known.ID:
		t.Fatalf("%s, as %s: begun again as %s, %v", what, now.ID, next.ID, err)
	}
	if blocks, err := client(server, 2).List(t.Context()); err != nil || len(blocks) != 0 {
		t.Errorf("%s: list: %+v, %v; want no blocks", what, blocks, err)
	}
	fill(t, server, next.ID)
	if b.earlier {
		if len(next.Earlier) != 1 || next.Earlier[0] != known.History {
			t.Errorf("%s: earlier histories %+v, want %+v", what, next.Earlier, known.History)
		}
		for _, call := range calls.OnBlocks(t.Context(), known, g, t0) {
			if call.Name != "list" {
				wantErr(t, call.Name+" in the earlier history", call.Err, lease.ErrHistory)
			}
		}
	}
	return true
}

// Two calls at once: the second one at any moment of the first one's, and leases are granted before
// the first one continues, which changes nothing then.
func TestBeginnersMeet(t *testing.T) {
	for _, b := range beginnings {
		for at, met := 1, true; met; at++ {
			synctest.Test(t, func(t *testing.T) {
				server, known, _ := b.before(t)
				var granted []lease.Grant
				var second error
				s, n := numbered(server, func(n int, _ string, send func() error) error {
					if n == at {
						var d lease.Description
						if d, second = b.call(t, client(server, 2),
							known.Description); second == nil {
							granted = fill(t, server, d.ID)
						}
					}
					return send()
				})
				_, first := b.call(t, s, known.Description)
				if met = *n >= at; met && (first == nil) == (second == nil) {
					t.Errorf("request %d: %v and %v", at, first, second)
				}
				if met && first != nil {
					wantErr(t, "the first call", first, b.refused)
				}
				wantGrants(t, server, granted)
			})
		}
	}
}

// A begin that advances is waited for, also for longer than one that does not.
func TestBeginWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(counted)
		s := open(server, 2, few(1024))
		slow, _ := numbered(server, func(_ int, _ string, send func() error) error {
			time.Sleep(50 * time.Millisecond)
			return send()
		})
		var all sync.WaitGroup
		var first lease.Description
		all.Go(func() {
			var err error
			if first, err = slow.Begin(t.Context(),
				calls.Begin(s.Description, lease.Moved)); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		began := time.Now()
		d, err := s.Begin(t.Context(), calls.Begin(s.Description, lease.Moved))
		wantErr(t, "begin", err, lease.ErrHistory)
		all.Wait()
		if took := time.Since(began); d.ID != first.ID || took < time.Minute {
			t.Errorf("begun by somebody else %s, found %s, after %s", first.ID, d.ID, took)
		}
	})
}

// The completing write of a begin is sent once, also to a server that is busy: the next attempt has
// another ID.
func TestCompletedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(counted)
		s := open(server, 2, few(8))
		var sent []string
		busy := flawed{server, func(w write) (driver.Object, error) {
			if bytes.Contains(w.data, []byte(`"Complete":true`)) {
				sent = append(sent, string(w.data))
				if len(sent) < 4 {
					return driver.Object{}, &driver.TryAgain{Err: errLost}
				}
			}
			return server.Write(w.ctx, w.name, w.data, w.version, w.place)
		}}
		began := time.Now()
		_, err := client(busy, 2).Begin(t.Context(), calls.Begin(s.Description, lease.Rekey))
		slices.Sort(sent)
		if took := time.Since(began); err != nil || len(slices.Compact(sent)) != 4 || took > 0 {
			t.Errorf("%v after %s: completing writes %q", err, took, sent)
		}
	})
}

// A store in another place grants nothing, also to a client that holds a lease of the original,
// which may grant the block to others. It gets a history of its own, and the original goes on.
func TestMoved(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	g := mustAcquire(t, s, s.request(t0))
	backup := save(t, server)
	server.Move()
	wantWrites(t, "in a copy", server, 0, func() {
		for _, s := range []stores.Store{s, client(server, 2)} {
			_, err := s.Describe(t.Context())
			wantErr(t, "describe", err, lease.ErrMoved)
			for _, call := range calls.OnBlocks(t.Context(), s, g, t0) {
				wantErr(t, call.Name, call.Err, lease.ErrMoved)
			}
		}
		_, err := client(server, 2).Create(t.Context(), few(8), calls.Secret())
		wantErr(t, "create", err, lease.ErrExists)
	})
	d, err := s.Begin(t.Context(), calls.Begin(s.Description, lease.Moved))
	if err != nil || d.Reason != lease.Moved || len(d.Earlier) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	mustAcquire(t, s, calls.Request(d.ID, t0))
	load(server, backup) // nobody has the old place again
	_, err = s.Renew(t.Context(), g, calls.Renewal(g))
	wantErr(t, "renew", err, lease.ErrMoved)
}

// A server that compares no place when it writes, and shows it with the description only, as two of
// the stores do: a grant that was written in a copy is not returned.
func TestMovedBeforeTheWrite(t *testing.T) {
	for at := 1; at <= 3; at++ {
		for _, call := range []string{"acquire", "renew", "get", "acquire again"} {
			server, n := new(counted), 0
			original := open(server, 2, few(8))
			r := original.request(t0)
			g := mustAcquire(t, original, r)
			weak := weak{server, func() {
				if n++; n == at {
					server.Move()
				}
			}}
			s := client(weak, 2)
			var err error
			switch call {
			case "acquire":
				_, err = s.Acquire(t.Context(), original.request(t0))
			case "acquire again":
				_, err = s.Acquire(t.Context(), r)
			case "renew":
				_, err = s.Renew(t.Context(), g, calls.Renewal(g))
			default:
				_, err = s.Get(t.Context(), g)
			}
			if n < at {
				wantErr(t, call, err, nil)
				continue
			}
			wantErr(t, fmt.Sprintf("%s, moved at request %d", call, at), err, lease.ErrMoved)
		}
	}
}

// weak is a server that compares no place, and shows it with the description only. It calls before
// ahead of each request.
type weak struct {
	*counted
	before func()
}

func (w weak) Read(ctx context.Context, name string) (driver.Object, error) {
	w.before()
	o, err := w.counted.Read(ctx, name)
	if name != "config" {
		o.Place = ""
	}
	return o, err
}

func (w weak) Write(ctx context.Context, name string, data []byte,
	version, _ string) (driver.Object, error) {
	w.before()
	here, err := w.counted.Read(ctx, name)
	if err != nil {
		return here, err
	}
	return w.counted.Write(ctx, name, data, version, here.Place)
}

// nowhere is a server that does not show its place, until it is prepared.
type nowhere struct {
	*counted
	prepared *bool
	useless  bool
}

func (n nowhere) Read(ctx context.Context, name string) (driver.Object, error) {
	o, err := n.counted.Read(ctx, name)
	if !*n.prepared {
		o.Place = ""
	}
	return o, err
}

func (n nowhere) Prepare(context.Context) error {
	*n.prepared = !n.useless
	return nil
}

// An unknown place equals nothing, also not another unknown one. A begin draws a place, if the
// server lets it.
func TestUnknownPlace(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	for _, text := range []string{"", "here"} {
		o, err := server.Read(t.Context(), "config")
		if err != nil {
			t.Fatal(err)
		}
		config := strings.Replace(string(o.Data), o.Place, text, 1)
		blank := new(counted)
		load(blank, save(t, server))
		blank.Set(map[string][]byte{"config": engine.Sealed([]byte(config))})
		shown := nowhere{counted: blank, prepared: new(bool), useless: true}
		for _, call := range calls.OnBlocks(t.Context(), client(shown, 2), s.block(0), t0) {
			wantErr(t, call.Name, call.Err, lease.ErrMoved)
		}
		_, err = client(shown, 2).Begin(t.Context(), calls.Begin(s.Description, lease.Moved))
		wantErr(t, "begin", err, lease.ErrMisconfigured)
		shown.useless = false
		d, err := client(shown, 2).Begin(t.Context(), calls.Begin(s.Description, lease.Moved))
		if err != nil {
			t.Fatal(err)
		}
		fill(t, blank, d.ID)
	}
}

// A page of another history, none, or one with fewer writes than this client has seen, contradicts
// a complete description. Once another history is begun, it is that.
func TestContradicted(t *testing.T) {
	for name, forget := range map[string]func(server *counted, backup map[string][]byte){
		"all": func(server *counted, backup map[string][]byte) { load(server, backup) },
		"a page": func(server *counted, backup map[string][]byte) {
			server.Set(map[string][]byte{"page-0000": backup["page-0000"]})
		},
		"a page is lost": func(server *counted, _ map[string][]byte) {
			server.Delete("page-0000")
		},
		"the description": func(server *counted, _ map[string][]byte) {
			other := new(counted)
			open(other, 2, few(2))
			server.Set(map[string][]byte{"page-0000": other.Data()["page-0000"]})
		},
	} {
		server := new(counted)
		s := open(server, 2, few(2))
		backup := save(t, server)
		g := mustAcquire(t, s, s.request(t0))
		forget(server, backup)
		for _, call := range calls.OnBlocks(t.Context(), s, g, t0) {
			if call.Name != "list" || name == "a page is lost" {
				wantErr(t, name+", "+call.Name, call.Err, lease.ErrContradicted)
			}
		}
		d, err := s.Begin(t.Context(), calls.Begin(s.Description, lease.Contradicted))
		if err != nil || d.Reason != lease.Contradicted {
			t.Fatalf("%s: begin: %+v, %v", name, d, err)
		}
		_, err = s.Renew(t.Context(), g, calls.Renewal(g))
		wantErr(t, name+", renew", err, lease.ErrHistory)
		mustAcquire(t, s, calls.Request(d.ID, t0))
	}
}

// A history gets the secret of the one that it leaves, unless an operator gives another one. A
// process that has neither begins none.
func TestWhoseSecret(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	both := calls.Secrets()
	old, next := randflake.NewKeyring(both.Codecs()[0]), randflake.NewKeyring(both.Codecs()[1])
	begin := func(r lease.BeginRequest, want *randflake.Keyring) lease.Description {
		t.Helper()
		now, _ := s.Describe(t.Context())
		r.Leaves, r.Reason, r.Now = now.ID, lease.Rekey, t0
		d, err := client(server, 2).Begin(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := d.Find(both); err != nil || found != want.Codec() {
			t.Errorf("%+v, %v: want the other secret", d, err)
		}
		return d
	}
	wantWrites(t, "without its secret", server, 0, func() {
		r := calls.Begin(s.Description, lease.Moved)
		r.Secrets = next
		_, err := s.Begin(t.Context(), r)
		wantErr(t, "begin", err, lease.ErrWrongSecret)
		r = calls.Begin(s.Description, lease.Rekey)
		r.Secret = new(randflake.Codec)
		_, err = s.Begin(t.Context(), r)
		wantErr(t, "begin with a zero secret", err, lease.ErrInvalidRequest)
	})
	begin(lease.BeginRequest{Secrets: both}, old)
	begin(lease.BeginRequest{Secret: next.Codec()}, next)
	d := begin(lease.BeginRequest{Secrets: both}, next)
	begin(lease.BeginRequest{Secrets: next}, next)
	r := calls.Begin(d, lease.Moved)
	r.Secrets, r.Leaves = old, ""
	_, err := s.Begin(t.Context(), r)
	wantErr(t, "begin where a history is", err, lease.ErrHistory)
}

// A store without a secret begins a history only for an operator.
func TestKeyless(t *testing.T) {
	server := new(counted)
	d, err := client(server, 2).Create(t.Context(), few(8), nil)
	if err != nil || !d.Keyless || d.Secret != "" {
		t.Fatalf("%+v, %v", d, err)
	}
	s := opened{client(server, 2), d}
	g := mustAcquire(t, s, s.request(t0))
	server.Move()
	for _, call := range calls.OnBlocks(t.Context(), s, g, t0) {
		if wantErr(t, call.Name, call.Err, lease.ErrMoved); !lease.Permanent(call.Err) {
			t.Errorf("%s: %v is not permanent", call.Name, call.Err)
		}
	}
	_, err = s.Begin(t.Context(), calls.Begin(d, lease.Moved))
	wantErr(t, "begin", err, lease.ErrMisconfigured)
	r := calls.Begin(d, lease.Rekey)
	r.Secret = calls.Secret()
	_, err = s.Begin(t.Context(), r)
	wantErr(t, "begin with a secret", err, lease.ErrInvalidRequest)
	next, err := s.Begin(t.Context(), calls.Begin(d, lease.Rekey))
	if err != nil || !next.Keyless || next.Secret != "" || next.ID == d.ID {
		t.Fatalf("%+v, %v", next, err)
	}
	fill(t, server, next.ID)
}

// Create sets defaults, and says what is there.
func TestCreate(t *testing.T) {
	server := &counted{Objects: memstore.Objects{Clock: func() time.Time { return t0 }}}
	s := client(server, 1<<10)
	d, err := s.Create(t.Context(), lease.Description{}, calls.Secret())
	if err != nil || d.Nodes != 1<<17 || d.BlockSize != 8 || d.LongestTTL != lease.DefaultTTL ||
		!d.Created.Equal(t0) || !d.Begun.Equal(t0) || d.Reason != lease.Created ||
		len(d.Histories()) != 1 || d.Fingerprint(calls.Secret()) != d.Secret {
		t.Fatalf("%+v, %v", d, err)
	}
	wantWrites(t, "create again", server, 0, func() {
		found, err := s.Create(t.Context(), few(8), calls.Secret())
		if wantErr(t, "create", err, lease.ErrExists); found.ID != d.ID {
			t.Errorf("found %+v, want %+v", found, d)
		}
		unaligned := few(8)
		unaligned.First = 4
		_, err = client(new(counted), 2).Create(t.Context(), unaligned, calls.Secret())
		wantErr(t, "create", err, lease.ErrInvalidRequest)
		_, err = client(new(counted), 2).Create(t.Context(), few(8), new(randflake.Codec))
		wantErr(t, "create", err, lease.ErrInvalidRequest)
	})
}

// Where the description is lost, nothing is created again, or begun.
func TestLostDescription(t *testing.T) {
	server := new(counted)
	old := open(server, 2, few(8))
	g := mustAcquire(t, old, old.request(t0))
	server.Delete("config")
	for _, s := range []stores.Store{old, client(server, 2)} {
		for _, call := range calls.OnBlocks(t.Context(), s, g, t0) {
			wantErr(t, call.Name, call.Err, lease.ErrNoStore)
		}
		_, err := s.Create(t.Context(), few(8), calls.Secret())
		wantErr(t, "create", err, lease.ErrExists)
		_, err = s.Begin(t.Context(), calls.Begin(old.Description, lease.Moved))
		wantErr(t, "begin", err, lease.ErrNoStore)
	}
}

// A call whose context is over returns its error, and writes nothing.
func TestContextsThatAreOver(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	g := mustAcquire(t, s, s.request(t0))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{done, late} {
		for _, s := range []stores.Store{s, killed(server, 0)} {
			for _, call := range calls.OnBlocks(ctx, s, g, t0) {
				wantErr(t, call.Name, call.Err, ctx.Err())
			}
			_, err := s.Begin(ctx, calls.Begin(lease.Description{}, lease.Rekey))
			wantErr(t, "begin", err, ctx.Err())
		}
	}
	if got, err := s.Get(t.Context(), g); err != nil || got != g {
		t.Errorf("now the block is %+v, %v; want %+v", got, err, g)
	}
}

// A change that others always precede ends with an error, even if its context has no deadline.
func TestOthersAlwaysWriteFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, n := new(counted), 0
		other := open(server, 2, few(2))
		g := mustAcquire(t, other, other.request(t0))
		_, err := open(writes(server, func(_ string, send func() error) error {
			n++
			g = mustRenew(t, other, g)
			return send()
		}), 2, few(2)).Acquire(t.Context(), other.request(t0))
		const want = "page-0000: another client wrote it first in each of 50 attempts"
		if err == nil || !strings.Contains(err.Error(), want) || n != 50 {
			t.Errorf("%v after %d writes, want %s", err, n, want)
		}
	})
}

// What a server says it stored is compared with what was sent.
func TestOtherAnswers(t *testing.T) {
	for name, answer := range map[string]func(version string) driver.Object{
		"the old data": func(version string) driver.Object { // as a webhook may keep it
			return driver.Object{Version: "next", Data: []byte(version)}
		},
		"the old version": func(version string) driver.Object {
			return driver.Object{Version: version}
		},
		"no object": func(string) driver.Object { return driver.Object{} },
	} {
		server := new(counted)
		s := open(server, 2, few(2))
		altered := flawed{server, func(w write) (driver.Object, error) {
			return answer(w.version), nil
		}}
		_, err := client(altered, 2).Acquire(t.Context(), s.request(t0))
		wantErr(t, name, err, engine.ErrAltered)
		wantUnknown(t, name, err)
	}
	// Create detects a server that returns nothing and stores nothing.
	swallows := flawed{new(counted), func(write) (driver.Object, error) {
		return driver.Object{Version: "next"}, nil
	}}
	_, err := client(swallows, 2).Create(t.Context(), few(2), calls.Secret())
	wantErr(t, "create", err, lease.ErrNoStore)
}

func TestBlocksPerPage(t *testing.T) {
	for perPage, good := range map[uint32]bool{0: false, 1: true, 1 << 17: true, 1<<17 + 1: false,
		1<<32 - 1: false} {
		_, err := stores.New(&counted{}, driver.Layout{Name: "teststore", BlocksPerPage: perPage})
		if good {
			s := open(&counted{}, perPage, lease.Description{Nodes: 1 << 17, BlockSize: 1 << 12})
			mustAcquire(t, s, s.request(t0))
		} else {
			wantErr(t, fmt.Sprint(perPage, " blocks on a page"), err, lease.ErrInvalidRequest)
		}
	}
}

// A store that is set back, again and again, grants nothing twice in one history.
func TestRestored(t *testing.T) {
	server := new(counted)
	calls.Restored(t, func() (stores.Store, error) { return client(server, 2), nil })
}
