package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/lease/memstore"
)

// The bytes are read by other versions of the library.
func TestFormat(t *testing.T) {
	server := &counted{Objects: memstore.Objects{Clock: func() time.Time { return t0 }}}
	s := open(server, 2, few(2))
	again, err := s.Begin(t.Context(), calls.Begin(s.Description, lease.Rekey))
	if err != nil {
		t.Fatal(err)
	}
	place, err := server.Read(t.Context(), "config")
	if err != nil {
		t.Fatal(err)
	}
	fixed := strings.NewReplacer(again.ID, strings.Repeat("2", 32),
		again.Secret, "2233445566778899", s.ID, strings.Repeat("1", 32),
		s.Secret, "1122334455667788", place.Place, "drawn")
	r := calls.Request(again.ID, t0)
	r.Nonce, r.Owner = strings.Repeat("01", 16), "pod<1>"
	mustAcquire(t, s, r)
	r.Nonce, r.Owner = strings.Repeat("04", 16), "pod<3>"
	g := mustAcquire(t, s, r)
	renewal := calls.Renewal(g)
	renewal.Nonce = strings.Repeat("07", 16)
	if _, err := s.Renew(t.Context(), g, renewal); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "page-0000"} {
		want, err := os.ReadFile("testdata/format/" + name)
		if err != nil {
			t.Fatal(err)
		}
		o, err := server.Read(t.Context(), name)
		if got := engine.Sealed([]byte(fixed.Replace(string(o.Data)))); err != nil ||
			!bytes.Equal(got, want) {
			t.Errorf("%s, %v: got\n%swant\n%s", name, err, got, want)
		}
		// What a later version of the library adds is ignored.
		more := engine.Sealed(bytes.ReplaceAll(o.Data, []byte("{"), []byte(`{"Later":"x",`)))
		server.Set(map[string][]byte{name: more})
	}
	mustAcquire(t, s, calls.Request(again.ID, t0.Add(time.Minute)))
}

// The longest owner takes two bytes for each of its own.
func TestSize(t *testing.T) {
	server := &counted{}
	s := open(server, 64, few(64))
	for range 64 {
		r := s.request(t0)
		r.Owner = strings.Repeat(`"`, 128)
		mustAcquire(t, s, r)
	}
	if o, err := server.Read(t.Context(), "page-0000"); err != nil || len(o.Data) > 64*500 {
		t.Errorf("64 blocks: %d bytes, want at most 500 each; %v", len(o.Data), err)
	}
}

// What somebody edited is refused, and nothing is written over it.
func TestEdited(t *testing.T) {
	for name, c := range map[string]struct {
		object, old, with string // "" stands for the whole object, without a checksum
		want              error
	}{
		"empty":       {"page-0000", "", "\n", driver.ErrEdited},
		"no checksum": {"page-0000", "", `{"Format":4,"Number":0}`, driver.ErrEdited},
		"another sum": {"page-0000", "", "{\"Format\":4}\n{}", driver.ErrEdited},
		"not ours":    {"page-0000", "", `{"kind":"Lease"}`, lease.ErrSchemaVersion},
		"newer":       {"page-0000", "", `{"Format":5,"Number":"a"}`, lease.ErrSchemaVersion},
		"older": {"config", "", `{"Format":3,"ID":"0123456789abcdef0123456789abcdef"}`,
			lease.ErrSchemaVersion},
		"no pages": {"config", `"BlocksPerPage":64`, `"BlocksPerPage":0`,
			driver.ErrEdited},
		"3 nodes":           {"config", `"BlockSize":8`, `"BlockSize":3`, driver.ErrEdited},
		"another page":      {"page-0000", `"Number":0`, `"Number":3`, driver.ErrEdited},
		"another history's": {"page-0000", `"Store":"`, `"Store":"another`, lease.ErrContradicted},
		"another block":     {"page-0000", `"Node":0`, `"Node":512`, driver.ErrEdited},
		"another size":      {"page-0000", `"Nodes":8`, `"Nodes":16`, driver.ErrEdited},
		"no version":        {"page-0000", `"Version":1`, `"Version":0`, driver.ErrEdited},
		"a block twice": {"page-0000", `"Owner":""}`, `"Owner":""}` + "\n" +
			`{"Node":0,"Nodes":8,"End":"2026-05-04T03:03:01Z","Nonce":"1","Acquired":"1",` +
			`"Version":1}`, driver.ErrEdited},
	} {
		server := new(counted)
		s := open(server, 64, few(64))
		g := mustAcquire(t, s, s.request(t0))
		all := server.Data()
		data := []byte(c.with)
		if c.old != "" {
			data = engine.Sealed(bytes.ReplaceAll(all[c.object], []byte(c.old), data))
		}
		all[c.object] = data
		server.Set(all)
		wantWrites(t, name, server, 0, func() {
			for _, call := range calls.OnBlocks(t.Context(), client(server, 64), g, t0) {
				if wantErr(t, name+", "+call.Name, call.Err, c.want); call.Err != nil &&
					(!strings.Contains(call.Err.Error(), c.object) ||
						strings.Contains(call.Err.Error(), "%!")) {
					t.Errorf("%s, %s: the error lacks %s: %v", name, call.Name, c.object, call.Err)
				}
			}
		})
	}
}

// A start takes four requests, a renewal three, if the store is not nearly full.
func TestRequests(t *testing.T) {
	server := &counted{Objects: memstore.Objects{Clock: func() time.Time { return t0 }}}
	sent := func(what string, reads, writes int, err error) {
		t.Helper()
		if err != nil || server.Reads != reads || server.Writes != writes {
			t.Errorf("%s: %d reads, %d writes, want %d, %d; %v", what, server.Reads,
				server.Writes, reads, writes, err)
		}
		server.Reads, server.Writes = 0, 0
	}
	d, err := client(server, 64).Create(t.Context(), lease.Description{}, calls.Secret())
	sent("create", 1+3*256, 2+256, err)
	s, r := client(server, 64), calls.Request(d.ID, t0)
	first, err := s.Acquire(t.Context(), r)
	sent("the first acquire", 3, 1, err)
	again, err := s.Acquire(t.Context(), r)
	if sent("the same again", 2, 0, err); again != first {
		t.Errorf("the same again: %+v, want %+v", again, first)
	}
	g, err := s.Acquire(t.Context(), calls.Request(d.ID, t0))
	sent("acquire", 2, 1, err)
	_, err = s.Renew(t.Context(), g, calls.Renewal(g))
	sent("renew", 2, 1, err)
	_, err = s.Get(t.Context(), g)
	sent("get", 2, 0, err)
	_, err = s.List(t.Context())
	sent("list", 258, 0, err)
	_, err = s.Begin(t.Context(), calls.Begin(d, lease.Rekey))
	sent("begin", 1+2*256, 2+256, err)
}

// A store shortens requests that are too long for it, and refuses invalid ones.
func TestTTL(t *testing.T) {
	s := client(new(counted), 64)
	d, err := s.Create(t.Context(), lease.Description{LongestTTL: time.Minute}, calls.Secret())
	if err != nil {
		t.Fatal(err)
	}
	r := calls.Request(d.ID, t0)
	r.TTL = lease.MaxTTL
	g := mustAcquire(t, s, r)
	r.Nonce, r.Now = lease.NewNonce(), t0.Add(time.Second)
	renewed, err := s.Renew(t.Context(), g, r)
	if err != nil || !g.End.Equal(t0.Add(time.Minute)) ||
		!renewed.End.Equal(t0.Add(time.Minute+time.Second)) {
		t.Errorf("granted %+v, renewed %+v, %v, want a minute each", g, renewed, err)
	}
	r.TTL = 0
	_, err = s.Acquire(t.Context(), r)
	wantErr(t, "acquire", err, lease.ErrInvalidRequest)
	_, err = s.Renew(t.Context(), renewed, r)
	wantErr(t, "renew", err, lease.ErrInvalidRequest)
}

// A process that starts while a fleet holds 61 % of the blocks needs little more than three
// requests. Even the last processes of a fleet that holds 98 % find a block soon, and a repeated
// request finds it again.
func TestRequestsOfAFleet(t *testing.T) {
	server := new(counted)
	s := open(server, 16, lease.Description{Nodes: 1 << 17, BlockSize: 64})
	n, nonces := 0, rand.New(rand.NewPCG(1, 1))
	r, last := s.request(t0), lease.Grant{}
	for _, c := range []struct {
		to            int
		reads, writes float64 // at most
	}{{1250, 2.15, 1.1}, {1875, 3.5, 1.5}, {2000, 9, 2.5}} {
		from, reads, writes := n, server.Reads, server.Writes
		for ; n < c.to; n++ {
			r.Nonce = fmt.Sprintf("%016x%016x", nonces.Uint64(), nonces.Uint64())
			last = mustAcquire(t, s, r)
		}
		each := func(requests int) float64 { return float64(requests) / float64(n-from) }
		if r, w := each(server.Reads-reads), each(server.Writes-writes); r > c.reads ||
			w > c.writes {
			t.Errorf("up to %d: %.2f reads and %.2f writes each", n, r, w)
		}
	}
	if again := mustAcquire(t, s, r); again != last {
		t.Errorf("repeated, the last request is granted %+v instead of %+v", again, last)
	}
}

// A renewal that the network repeats was written, and its answer says that it was not: then the
// call must not say either, unless the block was granted again since.
func TestRepeatedWrite(t *testing.T) {
	server := &counted{}
	good := open(server, 1, few(1))
	then := func() {}
	twice := open(writes(server, func(_ []byte, send func() error) error {
		_ = send()
		then()
		return send()
	}), 1, few(1))
	var g lease.Grant
	wantWrites(t, "acquire", server, 2, func() { g = mustAcquire(t, twice, good.request(t0)) })
	r := good.request(t0)
	_, err := twice.Renew(t.Context(), g, r)
	wantUnknown(t, "renew", err)
	got, err := good.Get(t.Context(), g)
	if err != nil || got.Nonce != r.Nonce || got.Version != 2 {
		t.Errorf("get: %+v, %v", got, err)
	}
	// Another holder has the block by now.
	then = func() { mustAcquire(t, good, good.request(t0.Add(time.Hour))) }
	_, err = twice.Renew(t.Context(), got, good.request(t0))
	wantErr(t, "renew", err, lease.ErrLost)
}

// A client whose clock is ahead is refused, and a grant tells how far it is behind. The server
// sends whole seconds: the last one may be nearly over.
func TestClock(t *testing.T) {
	now := func() time.Time { return t0.Add(900 * time.Millisecond) }
	server := &counted{Objects: memstore.Objects{Clock: now}}
	s := open(server, 64, few(64))
	held := mustAcquire(t, s, s.request(t0))
	for _, c := range []struct {
		clock         func() time.Time // the server's
		ahead, behind time.Duration
		want          error
	}{
		{now, engine.ClockBound + 900*time.Millisecond, 0, nil},
		{now, engine.ClockBound + 1001*time.Millisecond, 0, lease.ErrClockAhead},
		{now, -engine.ClockBound, 0, nil}, {now, -2 * time.Hour, 2 * time.Hour, nil},
		{nil, 9 * time.Hour, 0, nil}, {nil, -9 * time.Hour, 0, nil},
	} {
		server.Clock = c.clock
		acquired, err := s.Acquire(t.Context(), s.request(t0.Add(c.ahead)))
		renewed, failed := s.Renew(t.Context(), held, s.request(t0.Add(c.ahead)))
		if !errors.Is(err, c.want) || !errors.Is(failed, c.want) || acquired.Behind != c.behind ||
			renewed.Behind != c.behind {
			t.Errorf("%s ahead: %+v, %v; %+v, %v", c.ahead, acquired, err, renewed, failed)
		}
		if failed == nil {
			held = renewed
		}
	}
}

// rights is a client that can tell whether it has them.
type rights struct {
	driver.Objects
	check func() error
}

func (r rights) CheckRights(context.Context) error { return r.check() }

// A request to a busy server is repeated, not before the server allows it and within the call's
// time.
func TestBusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			busy           int // requests in a row
			after, timeout time.Duration
			least, most    time.Duration // of the call
			want           error
		}{
			{1, 2 * time.Second, time.Minute, 2 * time.Second, 3 * time.Second, nil},
			{9, 0, time.Minute, 0, 52 * time.Second, nil},
			{10, 0, 2 * time.Minute, 0, 52 * time.Second, errLost},
			{1, time.Minute, 10 * time.Second, 0, 0, context.DeadlineExceeded},
		} {
			requests := 0
			s := client(rights{check: func() error {
				if requests++; requests <= c.busy {
					return fmt.Errorf("busy: %w", &driver.TryAgain{Err: errLost, After: c.after})
				}
				return nil
			}}, 1)
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			began := time.Now()
			err := s.CheckRights(ctx)
			if took := time.Since(began); !errors.Is(err, c.want) || took < c.least ||
				took > c.most {
				t.Errorf("%+v: %v after %s and %d requests", c, err, took, requests)
			}
			cancel()
		}
	})
}
