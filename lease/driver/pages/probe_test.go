package pages_test

import (
	"context"
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
	return openLayout(s, pages.Layout{Name: "teststore", BlocksPerPage: 64, Probe: probe}, driver.NodeRange{})
}

// A server whose conditional writes are not what they should be gets nothing but
// the probe's objects, however often it is asked.
func TestProbeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		server wire
		want   string
	}{
		"checks first and writes later": {
			correct(&pagestest.Server{Checked: func(string) { time.Sleep(2 * time.Millisecond) }}), "8 writes at once, each on condition that",
		},
		"checks before the data is there": {early(), "it acknowledged 8; exactly one may be"},
		"ignores conditions": {
			correct(&pagestest.Server{Ignores: func(string) bool { return true }}), "it acknowledged 8; exactly one may be",
		},
		"ignores conditions of writes that are alone": {alone(), "it replaced an object on condition that"},
		"takes none": {writes(&pagestest.Server{}, func(*message, func() answer) answer {
			return answer{err: pages.ErrChanged}
		}), "it refused all of 8 writes at once"},
		"acknowledges what it forgets": {once(), "acknowledged one, and then the object still has"},
		"lists old versions": {wire{&pagestest.Server{}, func(_ *message, do func() answer) answer {
			a := do()
			for name := range a.listed {
				a.listed[name] = pages.Object{Version: "old"}
			}
			return a
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
				all, err := c.server.server.List(t.Context())
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

func correct(s *pagestest.Server) wire {
	return writes(s, func(_ *message, do func() answer) answer { return do() })
}

// early is a server that checks conditions when the first data arrives, and is
// too quick to be caught by writes that are not held up.
func early() wire {
	var mu sync.Mutex
	now := map[string]string{} // versions
	return writes(&pagestest.Server{}, func(m *message, do func() answer) answer {
		mu.Lock()
		same := now[m.name] == m.version
		mu.Unlock()
		if !same {
			return answer{err: pages.ErrChanged}
		}
		pages.Halfway(m.ctx)
		mu.Lock()
		defer mu.Unlock()
		m.version = now[m.name]
		a := do()
		now[m.name] = a.object.Version
		return a
	})
}

// alone is a server that honours conditions only while another write is in
// progress.
func alone() wire {
	var mu sync.Mutex
	seen := map[string]int{} // by condition
	return writes(&pagestest.Server{}, func(m *message, do func() answer) answer {
		mu.Lock()
		defer mu.Unlock()
		if seen[m.name+m.version]++; seen[m.name+m.version] > 8 {
			m.version = "anything"
			m.version = do().object.Version // what it has
		}
		return do()
	})
}

// once is a server that acknowledges the first write of several, and makes none.
func once() wire {
	var mu sync.Mutex
	seen := map[string]int{}
	return writes(&pagestest.Server{}, func(m *message, do func() answer) answer {
		mu.Lock()
		defer mu.Unlock()
		if m.version == "" {
			return do()
		}
		seen[m.version]++
		if seen[m.version]%8 != 1 {
			return answer{err: pages.ErrChanged}
		}
		return answer{object: pages.Object{Version: "another"}}
	})
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
