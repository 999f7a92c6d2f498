package pages_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
)

// probed creates a store on a server, which it probes.
func probed(ctx context.Context, s pages.Server) error {
	store, err := pages.New(s, pages.Layout{Name: "teststore", BlocksPerPage: 64, Probe: true})
	if err == nil {
		err = store.Create(ctx, describe(few(64)))
	}
	return err
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
			correct(&pagestest.Server{Ignores: true}), "it acknowledged 8; exactly one may be",
		},
		"ignores conditions of writes that are alone": {alone(), "it replaced an object on condition that"},
		"takes none": {writes(&pagestest.Server{}, func(*message, func() answer) answer {
			return answer{err: pages.ErrChanged}
		}), "it refused all of 8 writes at once"},
		"acknowledges what it forgets": {once(), "acknowledged one, and then the object still has"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				err := probed(t.Context(), c.server)
				wantErr(t, "create", err, lease.ErrMisconfigured)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got error %v, want it to say %q", err, c.want)
				}
			}
			all, err := c.server.server.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for object := range all {
				if object != "probe" {
					t.Errorf("it wrote %s", object)
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

// Probes by many operators at once do not mislead each other.
func TestProbeAtOnce(t *testing.T) {
	server := &pagestest.Server{Now: time.Now}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if err := probed(t.Context(), server); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// A probe ends with its context.
func TestProbeIsCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	wantErr(t, "create", probed(ctx, writes(&pagestest.Server{}, func(m *message, _ func() answer) answer {
		<-m.ctx.Done()
		return answer{err: m.ctx.Err()}
	})), context.DeadlineExceeded)
}
