package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// probed creates a store on a server, which it probes.
func probed(ctx context.Context, s driver.Objects) error {
	store, err := stores.New(s, driver.Layout{Name: "teststore", BlocksPerPage: 64, Probe: true})
	if err == nil {
		err = store.Create(ctx, describe(few(64)))
	}
	return err
}

// On a server with wrong conditional writes only the probe's objects are written, however often a
// store is created.
func TestProbeRefuses(t *testing.T) {
	accepts := func(f func(unchanged bool) bool) func(*counted) driver.Objects {
		return func(s *counted) driver.Objects {
			s.Accepts = func(_ string, unchanged bool) bool { return f(unchanged) }
			return s
		}
	}
	for name, c := range map[string]struct {
		flawed func(*counted) driver.Objects
		want   string
	}{
		"checks first and writes later": {accepts(
			func(unchanged bool) bool { time.Sleep(2 * time.Millisecond); return unchanged }),
			"8 writes at once, each on condition that"},
		"checks before the data is there": {early,
			"it acknowledged 8; exactly one may be"},
		"ignores conditions": {accepts(func(bool) bool { return true }),
			"it acknowledged 8; exactly one may be"},
		"ignores conditions of writes that are alone": {alone,
			"it replaced an object on condition that"},
		"takes none": {accepts(func(bool) bool { return false }),
			"it refused all of 8 writes at once"},
		"accepts two":                  {two, "it acknowledged 2; exactly one may be"},
		"acknowledges what it forgets": {once, "acknowledged one, and then the object still has"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			server := new(counted)
			for range 2 {
				err := probed(ctx, c.flawed(server))
				wantErr(t, "create", err, lease.ErrMisconfigured)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got error %v, want it to say %q", err, c.want)
				}
			}
			all, err := server.List(t.Context())
			if delete(all, "probe"); err != nil || len(all) > 0 {
				t.Errorf("it has %d more objects, %v", len(all), err)
			}
		})
	}
}

// early is a server that checks conditions when the first data arrives, and is
// too quick to be caught by writes that are not held up.
func early(s *counted) driver.Objects {
	s.Accepts = func(string, bool) bool { return true }
	return writes(s, func(m *message, do func() answer) answer {
		if o, _ := s.Read(m.ctx, m.name); o.Version != m.version {
			return answer{err: driver.ErrChanged}
		}
		driver.PartSent(m.ctx)
		return do()
	})
}

// alone is a server that honours conditions only while another write is in
// progress.
func alone(s *counted) driver.Objects {
	s.Accepts = func(string, bool) bool { return true }
	seen := map[string]int{} // by condition
	return oneAtATime(writes(s, func(m *message, do func() answer) answer {
		o, _ := s.Read(m.ctx, m.name)
		if seen[m.version]++; seen[m.version] <= 8 && o.Version != m.version {
			return answer{err: driver.ErrChanged}
		}
		return do()
	}))
}

// two is a server that accepts two of eight writes.
func two(s *counted) driver.Objects {
	n := 0
	s.Accepts = func(_ string, unchanged bool) bool {
		n++
		return unchanged || n%8 == 2
	}
	return oneAtATime(writes(s, func(_ *message, do func() answer) answer { return do() }))
}

// once is a server that acknowledges the first of several writes, and stores none.
func once(s *counted) driver.Objects {
	seen := map[string]int{}
	return oneAtATime(writes(s, func(m *message, do func() answer) answer {
		switch seen[m.version]++; {
		case m.version == "":
			return do()
		case seen[m.version]%8 != 1:
			return answer{err: driver.ErrChanged}
		}
		return answer{object: driver.Object{Version: "another"}}
	}))
}

// Probes by many operators at once do not mislead each other.
func TestProbeAtOnce(t *testing.T) {
	server := &counted{Objects: memstore.Objects{Clock: time.Now}}
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
	wantErr(t, "create", probed(ctx, writes(&counted{}, func(m *message, _ func() answer) answer {
		<-m.ctx.Done()
		return answer{err: m.ctx.Err()}
	})), context.DeadlineExceeded)
}
