package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
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
func numbered(server *counted, on func(n int, send func() error) error) (stores.Store, *int) {
	turn, n := make(chan struct{}, 1), new(int) // not a mutex, for synctest
	return client(wire{server, func(_ context.Context, _ []byte, send func() error) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		*n++
		return on(*n, send)
	}}, 2), n
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

// before returns a server before the call, and a client that knows its store, of which a block was
// granted.
func (b beginning) before(t *testing.T) (*counted, opened) {
	server := new(counted)
	if !b.earlier {
		return server, opened{client(server, 2), lease.Description{}}
	}
	s := open(server, 2, few(8))
	mustAcquire(t, s, s.request(t0))
	return server, s
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
	server, known := b.before(t)
	s, n := numbered(server, func(n int, send func() error) error {
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
	what := fmt.Sprintf("interrupted at request %d, made %t", at, made)
	wantErr(t, what, err, errLost)
	now, err := client(server, 2).Describe(t.Context())
	if errors.Is(err, b.during) {
		for _, id := range []string{known.ID, now.ID} {
			_, err := known.Acquire(t.Context(), calls.Request(id, t0))
			if !errors.Is(err, b.during) && !errors.Is(err, lease.ErrContradicted) {
				t.Errorf("%s: acquire: %v", what, err)
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
	fill(t, server, next.ID)
	if b.earlier && (len(next.Earlier) != 1 || next.Earlier[0] != known.History) {
		t.Errorf("%s: earlier histories %+v, want %+v", what, next.Earlier, known.History)
	}
	return true
}

// Two calls at once: the second one at any moment of the first one's, and leases are granted before
// the first one continues, which changes nothing then.
func TestBeginnersMeet(t *testing.T) {
	for _, b := range beginnings {
		for at, met := 1, true; met; at++ {
			synctest.Test(t, func(t *testing.T) {
				server, known := b.before(t)
				var granted []lease.Grant
				var second error
				s, n := numbered(server, func(n int, send func() error) error {
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
		slow, _ := numbered(server, func(_ int, send func() error) error {
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
		busy := writes(server, func(data []byte, send func() error) error {
			if bytes.Contains(data, []byte(`"Complete":true`)) {
				if sent = append(sent, string(data)); len(sent) < 4 {
					return &driver.TryAgain{Err: errLost}
				}
			}
			return send()
		})
		began := time.Now()
		_, err := client(busy, 2).Begin(t.Context(), calls.Begin(s.Description, lease.Rekey))
		slices.Sort(sent)
		if took := time.Since(began); err != nil || len(slices.Compact(sent)) != 4 || took > 0 {
			t.Errorf("%v after %s: completing writes %q", err, took, sent)
		}
	})
}

// What calls return in a store to which something has happened, until another history was begun, if
// that is possible.
func TestWhatHappensToAStore(t *testing.T) {
	type objects map[string][]byte
	for name, c := range map[string]struct {
		happens func(server *counted, backup objects)
		want    error // of calls on blocks
		reason  string
		begin   error // of Begin
	}{
		"it is copied": {func(s *counted, _ objects) { s.Move() },
			lease.ErrMoved, lease.Moved, nil},
		"it is set back": {func(s *counted, backup objects) { s.Set(backup) },
			lease.ErrContradicted, lease.Contradicted, nil},
		"a page is set back": {func(s *counted, backup objects) {
			s.Set(objects{"page-0000": backup["page-0000"]})
		}, lease.ErrContradicted, lease.Contradicted, nil},
		"a page is lost": {func(s *counted, _ objects) { s.Set(objects{"page-0000": nil}) },
			lease.ErrContradicted, lease.Contradicted, nil},
		"it gets the page of another": {func(s *counted, _ objects) {
			other := new(counted)
			open(other, 2, few(2))
			s.Set(objects{"page-0000": other.Data()["page-0000"]})
		}, lease.ErrContradicted, lease.Contradicted, nil},
		"its description is lost": {func(s *counted, _ objects) { s.Set(objects{"config": nil}) },
			lease.ErrNoStore, lease.Moved, lease.ErrNoStore},
	} {
		server := new(counted)
		s := open(server, 2, few(2))
		backup := server.Data()
		g := mustAcquire(t, s, s.request(t0))
		c.happens(server, backup)
		for _, call := range calls.OnBlocks(t.Context(), s, g, t0) {
			wantErr(t, name+", "+call.Name, call.Err, c.want)
		}
		_, err := client(server, 2).Create(t.Context(), few(2), calls.Secret())
		wantErr(t, name+", create", err, lease.ErrExists)
		d, err := s.Begin(t.Context(), calls.Begin(s.Description, c.reason))
		if wantErr(t, name+", begin", err, c.begin); err != nil {
			continue
		}
		if d.Reason != c.reason || len(d.Earlier) != 1 {
			t.Errorf("%s: begun: %+v", name, d)
		}
		_, err = s.Renew(t.Context(), g, calls.Renewal(g))
		wantErr(t, name+", renew", err, lease.ErrHistory)
		mustAcquire(t, s, calls.Request(d.ID, t0))
	}
}

// split is a server of whose copy clients reach the pages.
type split struct{ *counted }

func (s split) Read(ctx context.Context, name string) (driver.Object, error) {
	o, err := s.counted.Read(ctx, name)
	if name != "config" {
		o.Place = "elsewhere"
	}
	return o, err
}

// A page that fits the history that a client knows is not enough: it may be that of a copy, or have
// been set back alone after another history began. A server that compares no place when it writes,
// and shows it with the description only, as two of the stores do, may be a copy at any request.
func TestPageAlone(t *testing.T) {
	for _, call := range []string{"acquire", "acquire again", "full", "renew", "get"} {
		for at := range 5 {
			server, n := new(counted), 0
			s := open(server, 2, few(1))
			r := s.request(t0)
			g := mustAcquire(t, s, r)
			var reached lease.Store = client(weak{server, func() {
				if n++; n == at {
					server.Move()
				}
			}}, 2)
			want := lease.ErrMoved
			switch at {
			case 0:
				reached = client(split{server}, 2)
			case 4:
				page := map[string][]byte{"page-0000": server.Data()["page-0000"]}
				if _, err := client(server, 2).Begin(t.Context(),
					calls.Begin(s.Description, lease.Rekey)); err != nil {
					t.Fatal(err)
				}
				server.Set(page)
				reached, want = s, lease.ErrHistory
			}
			var err error
			switch call {
			case "acquire":
				_, err = reached.Acquire(t.Context(), calls.Request(s.ID, t0.Add(time.Hour)))
			case "acquire again":
				_, err = reached.Acquire(t.Context(), r)
			case "full":
				_, err = reached.Acquire(t.Context(), calls.Request(s.ID, t0))
			case "renew":
				_, err = reached.Renew(t.Context(), g, calls.Renewal(g))
			default:
				_, err = reached.Get(t.Context(), g)
			}
			if 0 < at && at < 4 && n < at {
				want = nil
			}
			wantErr(t, fmt.Sprintf("%s, %d", call, at), err, want)
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
	weak
	prepared, useless *bool
}

func (n nowhere) Read(ctx context.Context, name string) (driver.Object, error) {
	o, err := n.weak.Read(ctx, name)
	if !*n.prepared {
		o.Place = ""
	}
	return o, err
}

func (n nowhere) Prepare(context.Context) error {
	*n.prepared = !*n.useless
	return nil
}

// An unknown place equals nothing, also not another unknown one. A begin draws a place, if the
// server lets it.
func TestUnknownPlace(t *testing.T) {
	server, prepared, useless := new(counted), false, true
	s := open(server, 2, few(8))
	place := regexp.MustCompile(`"Place":"\w+"`)
	unknown := place.ReplaceAll(server.Data()["config"], []byte(`"Place":""`))
	server.Set(map[string][]byte{"config": engine.Sealed(unknown)})
	hidden := client(nowhere{weak{server, func() {}}, &prepared, &useless}, 2)
	for _, call := range calls.OnBlocks(t.Context(), hidden, s.block(0), t0) {
		wantErr(t, call.Name, call.Err, lease.ErrMoved)
	}
	_, err := hidden.Begin(t.Context(), calls.Begin(s.Description, lease.Moved))
	wantErr(t, "begin", err, lease.ErrMisconfigured)
	useless = false
	d, err := hidden.Begin(t.Context(), calls.Begin(s.Description, lease.Moved))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, server, d.ID)
}

// A history gets the secret of the one that it leaves, unless an operator gives another one. A
// process that has neither begins none.
func TestWhoseSecret(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	both := calls.Secrets()
	old, next := randflake.NewKeyring(both.Codecs()[0]), randflake.NewKeyring(both.Codecs()[1])
	for i, c := range []struct {
		secrets *randflake.Keyring
		secret  *randflake.Codec // an operator's
		err     error
		want    *randflake.Codec
	}{
		{next, nil, lease.ErrWrongSecret, nil}, {both, new(randflake.Codec),
			lease.ErrInvalidRequest, nil}, {both, nil, nil, old.Codec()},
		{nil, next.Codec(), nil, next.Codec()}, {both, nil, nil, next.Codec()},
		{old, nil, lease.ErrWrongSecret, nil},
	} {
		now, _ := s.Describe(t.Context())
		d, err := client(server, 2).Begin(t.Context(), lease.BeginRequest{Leaves: now.ID,
			Reason: lease.Rekey, Now: t0, Secrets: c.secrets, Secret: c.secret})
		wantErr(t, fmt.Sprint(i), err, c.err)
		if found, _ := d.Find(both); err == nil && found != c.want {
			t.Errorf("%d: %+v has another secret", i, d)
		}
	}
	r := calls.Begin(lease.Description{}, lease.Moved)
	_, err := s.Begin(t.Context(), r)
	wantErr(t, "begin where a history is", err, lease.ErrHistory)
}

// Machines that draw the same bits, as copies do, begin other histories in copies of a store.
func TestIDsDependOnThePlace(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		s := client(new(counted), 2)
		s.(*engine.Store).Simulate(func([]byte) {}, nil)
		d, err := s.Create(t.Context(), few(2), calls.Secret())
		if err != nil || ids[d.ID] {
			t.Errorf("%s again, %v", d.ID, err)
		}
		ids[d.ID] = true
	}
}

// A store without a secret begins a history only for an operator.
func TestKeyless(t *testing.T) {
	server := new(counted)
	d, err := client(server, 2).Create(t.Context(), few(8), nil)
	if err != nil || !d.Keyless || d.Secret != "" {
		t.Fatalf("%+v, %v", d, err)
	}
	s := opened{client(server, 2), d}
	server.Move()
	for _, call := range calls.OnBlocks(t.Context(), s, s.block(0), t0) {
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
	found, err := s.Create(t.Context(), few(8), calls.Secret())
	if wantErr(t, "create again", err, lease.ErrExists); found.ID != d.ID {
		t.Errorf("found %+v, want %+v", found, d)
	}
	_, err = client(new(counted), 2).Create(t.Context(), few(8), new(randflake.Codec))
	wantErr(t, "create with a zero secret", err, lease.ErrInvalidRequest)
	server.Clock = nil
	r := calls.Begin(d, lease.Rekey)
	r.Now = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) // of which JSON has no form
	_, err = s.Begin(t.Context(), r)
	wantErr(t, "begin with a wrong clock", err, nil)
	d, err = s.Describe(t.Context())
	if err != nil || d.Begun.Unix() != randflake.EndOfLife {
		t.Errorf("begun with a wrong clock: %+v, %v", d, err)
	}
	_, err = stores.New(server, driver.Layout{BlocksPerPage: 1<<17 + 1})
	wantErr(t, "a page of more blocks than there are", err, lease.ErrInvalidRequest)
}

// A change that others always precede ends with an error, even if its context has no deadline.
func TestOthersAlwaysWriteFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(counted)
		other := open(server, 2, few(2))
		g := mustAcquire(t, other, other.request(t0))
		_, err := open(writes(server, func(_ []byte, send func() error) error {
			g = mustRenew(t, other, g)
			return send()
		}), 2, few(2)).Acquire(t.Context(), other.request(t0))
		const want = "page-0000: another client wrote it first in each of 50 attempts"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// altered is a server that stores nothing, and answers something else.
type altered struct {
	*counted
	answer func(version string) driver.Object
}

func (a altered) Write(_ context.Context, _ string, _ []byte,
	version, _ string) (driver.Object, error) {
	return a.answer(version), nil
}

// What a server says it stored is compared with what was sent.
func TestOtherAnswers(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(2))
	for name, answer := range map[string]func(version string) driver.Object{
		"the old data": func(version string) driver.Object { // as a webhook may keep it
			return driver.Object{Version: "next", Data: []byte(version)}
		},
		"the old version": func(version string) driver.Object {
			return driver.Object{Version: version}
		},
		"no object": func(string) driver.Object { return driver.Object{} },
	} {
		_, err := client(altered{server, answer}, 2).Acquire(t.Context(), s.request(t0))
		wantErr(t, name, err, engine.ErrAltered)
		wantUnknown(t, name, err)
	}
}
