package pages_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

func probing(s pages.Server, probe pages.Probe) *pages.Store {
	return must(pages.New(s, pages.Layout{Name: "teststore", BlocksPerPage: 64, Probe: probe}, driver.NodeRange{}))
}

// broken is a server with a fault in its conditional writes.
type broken struct {
	pages.Server
	write func(ctx context.Context, name string, data []byte, version string, do func(version string) (pages.Object, error)) (pages.Object, error)
	list  func(map[string]pages.Object)
}

func (b *broken) Write(ctx context.Context, name string, data []byte, version string) (pages.Object, error) {
	do := func(version string) (pages.Object, error) { return b.Server.Write(ctx, name, data, version) }
	if b.write == nil {
		return do(version)
	}
	return b.write(ctx, name, data, version, do)
}

func (b *broken) List(ctx context.Context) (map[string]pages.Object, error) {
	all, err := b.Server.List(ctx)
	if b.list != nil {
		b.list(all)
	}
	return all, err
}

// A server whose conditional writes are not what they should be gets nothing but
// the probe's objects, however often it is asked.
func TestProbeRefuses(t *testing.T) {
	type do = func(version string) (pages.Object, error)
	for name, c := range map[string]struct {
		server pages.Server
		want   string
	}{
		"checks first and writes later": {
			&pagestest.Server{Checked: func(string) { time.Sleep(2 * time.Millisecond) }},
			"8 writes at once, each on condition that",
		},
		"checks before the data is there": {
			&broken{Server: &pagestest.Server{}, write: early()}, "it acknowledged 8; exactly one may be",
		},
		"ignores conditions": {
			&pagestest.Server{Ignores: func(string) bool { return true }}, "it acknowledged 8; exactly one may be",
		},
		"ignores conditions of writes that are alone": {&broken{Server: &pagestest.Server{}, write: alone(t)}, "it replaced an object on condition that"},
		"takes none": {&broken{Server: &pagestest.Server{}, write: func(context.Context, string, []byte, string, do) (pages.Object, error) {
			return pages.Object{}, pages.ErrChanged
		}}, "it refused all of 8 writes at once"},
		"acknowledges what it forgets": {&broken{Server: &pagestest.Server{}, write: once()}, "acknowledged one, and then the object still has"},
		"lists old versions": {&broken{Server: &pagestest.Server{}, list: func(all map[string]pages.Object) {
			for name := range all {
				all[name] = pages.Object{Version: "old"}
			}
		}}, `it lists the version "old"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, probe := range []pages.Probe{pages.ProbeEachStart, pages.ProbeNewStore} {
				s := probing(c.server, probe)
				for range 2 {
					_, err := s.Acquire(t.Context(), request(t0))
					wantErr(t, "acquire", err, lease.ErrMisconfigured)
					if err == nil || !strings.Contains(err.Error(), c.want) {
						t.Fatalf("got error %v, want it to say %q", err, c.want)
					}
					wantErr(t, "raise", s.Raise(t.Context(), t0), lease.ErrMisconfigured)
				}
				all, err := c.server.List(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for object := range all {
					if !strings.HasPrefix(object, "probe-") {
						t.Errorf("it wrote %s", object)
					}
				}
			}
		})
	}
}

// early makes a server that checks conditions when the first data arrives, and
// is too quick to be caught by writes that are not held up.
func early() func(context.Context, string, []byte, string, func(string) (pages.Object, error)) (pages.Object, error) {
	var mu sync.Mutex
	now := map[string]string{} // versions
	return func(ctx context.Context, name string, _ []byte, version string, do func(string) (pages.Object, error)) (pages.Object, error) {
		mu.Lock()
		same := now[name] == version
		mu.Unlock()
		if !same {
			return pages.Object{}, pages.ErrChanged
		}
		pages.Halfway(ctx)
		mu.Lock()
		defer mu.Unlock()
		o, err := do(now[name])
		now[name] = o.Version
		return o, err
	}
}

// alone makes a server that honours conditions only while another write is in
// progress.
func alone(t *testing.T) func(context.Context, string, []byte, string, func(string) (pages.Object, error)) (pages.Object, error) {
	var mu sync.Mutex
	writes := map[string]int{} // by condition
	return func(_ context.Context, name string, _ []byte, version string, do func(string) (pages.Object, error)) (pages.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if writes[name+version]++; writes[name+version] <= 8 {
			return do(version)
		}
		o, err := do("anything")
		if !errors.Is(err, pages.ErrChanged) {
			t.Error(err)
		}
		return do(o.Version)
	}
}

// once makes a server that acknowledges the first write of several, and makes
// none.
func once() func(context.Context, string, []byte, string, func(string) (pages.Object, error)) (pages.Object, error) {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(_ context.Context, _ string, _ []byte, version string, do func(string) (pages.Object, error)) (pages.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if version == "" {
			return do(version)
		}
		seen[version]++
		if seen[version]%8 != 1 {
			return pages.Object{}, pages.ErrChanged
		}
		return pages.Object{Version: "another"}, nil
	}
}

// Probes of many processes at once do not mislead each other, and each process
// probes once.
func TestProbeAtOnce(t *testing.T) {
	server := &pagestest.Server{Now: time.Now}
	var all sync.WaitGroup
	for _, probe := range []pages.Probe{pages.ProbeEachStart, pages.ProbeNewStore} {
		for range 64 {
			all.Go(func() {
				s := probing(server, probe)
				for range 2 {
					if _, err := s.Acquire(t.Context(), request(time.Now())); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	s := probing(server, pages.ProbeEachStart)
	for i, most := range []int{64, 3} { // the probe's, the page's; another one on a page is refused seldom
		before := server.Writes
		if _, err := s.Acquire(t.Context(), request(time.Now())); err != nil || server.Writes-before > most {
			t.Errorf("acquire %d: %d writes, %v", i, server.Writes-before, err)
		}
	}
	before := server.Writes
	mustAcquire(t, probing(server, pages.ProbeNewStore), request(time.Now()))
	if n := server.Writes - before; n != 1 {
		t.Errorf("%d writes at a start with a store that is there, want 1", n)
	}
}

// A call whose context ends while another one probes does not wait for it.
func TestProbeIsWaitedFor(t *testing.T) {
	stuck, began := make(chan struct{}), make(chan struct{})
	var first sync.Once
	s := probing(&pagestest.Server{Checked: func(string) {
		first.Do(func() { close(began) })
		<-stuck
	}}, pages.ProbeEachStart)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Acquire(t.Context(), request(t0))
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, request(t0))
	wantErr(t, "acquire", err, context.DeadlineExceeded)
	close(stuck)
	<-done
}
