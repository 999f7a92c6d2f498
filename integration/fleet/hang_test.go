//go:build unix

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/internal/protocol"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	_ "github.com/traceflake/traceflake/lease/filestore"
	"github.com/traceflake/traceflake/lease/stores"
)

// hanging is a backend whose server hangs at one of the requests.
type hanging struct {
	driver.Objects
	left atomic.Int64 // requests until then
	hang func()
}

func (h *hanging) request() {
	if h.left.Add(-1) == 0 {
		h.hang()
	}
}

func (h *hanging) Read(ctx context.Context, name string) (driver.Object, error) {
	h.request()
	return h.Objects.Read(ctx, name)
}

func (h *hanging) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	h.request()
	return h.Objects.Write(ctx, name, data, version)
}

func (h *hanging) Close() error {
	if c, ok := h.Objects.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// place is the backend of one process. A server that is deaf receives no request of this process,
// one that is mute sends no response, until mend is called.
type place struct {
	objects driver.Objects
	deaf    func() (mend func())
	mute    func() (mend func()) // nil if it cannot be distinguished from deaf
}

// requests are the requests of a process. The server hangs at each in turn.
var requests = []string{"start: read", "acquire: read", "acquire: write", "renew: read",
	"renew: write", "release: read", "release: write"}

// A server that hangs at any request of a process ends each call with its context, and Close in
// time. It forgets nothing that it acknowledged, and grants nothing twice. When it answers again,
// the same client continues.
func TestHangingServers(t *testing.T) {
	for _, name := range append(slices.Sorted(maps.Keys(backends)), "file") {
		t.Run(name, func(t *testing.T) {
			newPlace := onServer(t, name)
			var all sync.WaitGroup
			cases := 0
			for i, request := range requests {
				for _, mute := range []bool{false, true} {
					p := newPlace(fmt.Sprintf("hangs%d%t", i, mute))
					if mute && p.mute == nil {
						continue
					}
					cases++
					all.Go(func() {
						hangs(t, fmt.Sprintf("%s, mute %t", request, mute), p, i+1, mute)
					})
				}
			}
			all.Wait()
			t.Logf("%d cases", cases)
		})
	}
}

// hangs runs a process whose server hangs at the nth request.
func hangs(t *testing.T, what string, p place, n int, mute bool) {
	const wait, patience = 200 * time.Millisecond, 2 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var hung time.Time
	mend := func() {}
	h := &hanging{Objects: p.objects}
	h.left.Store(int64(n))
	h.hang = func() {
		way := p.deaf
		if mute {
			way = p.mute
		}
		hung, mend = time.Now(), sync.OnceFunc(way())
		time.AfterFunc(wait, cancel)
		time.AfterFunc(wait+2*patience, mend) // of a call that does not obey its context
	}
	s, err := stores.New(h, driver.Layout{Name: what, BlocksPerPage: 1})
	if err != nil {
		t.Error(err)
		return
	}
	var held lease.Grant
	proposed := lease.Request{Now: time.Now(), TTL: time.Minute}
	renewed := func(call func() (lease.Grant, error)) (err error) {
		proposed.Nonce = protocol.NewNonce()
		g, err := call()
		if err == nil {
			held = g
		}
		return err
	}
	for _, call := range []func() error{
		func() error { _, err := s.Describe(ctx); return err },
		func() error {
			return renewed(func() (lease.Grant, error) { return s.Acquire(ctx, proposed) })
		},
		func() error {
			return renewed(func() (lease.Grant, error) { return s.Renew(ctx, held, proposed) })
		},
		func() error {
			proposed.Nonce = protocol.NewNonce()
			return s.Release(ctx, held, proposed.Nonce, held.End)
		},
	} {
		if err = call(); err != nil {
			break
		}
	}
	if took := time.Since(hung); !errors.Is(err, context.Canceled) || took > wait+patience {
		t.Errorf("%s: got %v after %s, want the context's error after %s", what, err, took, wait)
	}
	mend()

	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	another := lease.Request{Nonce: protocol.NewNonce(), Now: time.Now(), TTL: time.Minute}
	_, acquired := s.Acquire(ctx, another)
	stored, err := s.Get(ctx, 0)
	switch made := stored.Nonce == proposed.Nonce; { // whether its last write was made
	case err != nil:
		t.Errorf("%s: when the server answers again: %v", what, err)
	case acquired == nil && (held.Version > 0 || stored.Nonce != another.Nonce):
		t.Errorf("%s: another process acquired the block of %+v: %+v", what, held, stored)
	case acquired != nil && !errors.Is(acquired, lease.ErrNoFreeNode):
		t.Errorf("%s: another process: %v", what, acquired)
	case acquired != nil && !made && stored != held:
		t.Errorf("%s: after %+v the store has %+v", what, held, stored)
	case mute && n > 1 && n%2 == 1 && !made:
		t.Errorf("%s: the server got the write, and has %+v", what, stored)
	}

	defer p.deaf()()
	began := time.Now()
	_ = s.Close()
	if took := time.Since(began); took > patience {
		t.Errorf("%s: Close took %s", what, took)
	}
}

// onServer returns a function that creates a store of one block on a server of this kind, and
// returns the place of a process with a proxy of its own.
func onServer(t *testing.T, kind string) func(store string) place {
	t.Helper()
	create := func(url string) {
		s, err := stores.New(processes.Store(url).Objects(t),
			driver.Layout{Name: "hanging", BlocksPerPage: 1})
		if err != nil {
			t.Fatal(err)
		}
		processes.CreateWith(t, s, lease.Description{Nodes: 8})
	}
	if kind == "file" {
		dir := t.TempDir()
		return func(store string) place {
			path := filepath.Join(dir, store)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			create("file:" + path)
			return place{objects: processes.Store("file:" + path).Objects(t),
				deaf: func() func() { return lock(t, path) }}
		}
	}
	b := backends[kind](t)
	return func(store string) place {
		create(b.url(b.address, store))
		relay := network.NewProxy(t, b.address)
		var mu sync.Mutex // held while no response is delivered
		relay.Change = func(response []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			return response
		}
		return place{
			objects: processes.Store(b.url(relay.Address(), store)).Objects(t),
			deaf:    relay.Stall,
			mute:    func() func() { mu.Lock(); return mu.Unlock },
		}
	}
}

// lock locks a directory, as another process does.
func lock(t *testing.T, path string) (unlock func()) {
	d, err := os.Open(path)
	if err == nil {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Error(err)
	}
	return func() { _ = d.Close() }
}
