package engine_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/lease/stores"
)

// probed creates a store on a server, which it probes.
func probed(ctx context.Context, s driver.Objects) error {
	store, err := stores.New(s, driver.Layout{Name: "teststore", BlocksPerPage: 64, Probe: true})
	if err == nil {
		_, err = store.Create(ctx, few(64), calls.Secret())
	}
	return err
}

// On a server with wrong conditional writes only the probe's objects are written, however often a
// store is created.
func TestProbeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		server func(*counted) driver.Objects
		want   string
	}{
		"ignores conditions": {accepts(func(int, bool) bool { return true }), "acknowledged 8,"},
		"ignores conditions of writes that are alone": {accepts(func(n int, unchanged bool) bool {
			return unchanged || n > 5*8
		}), "it replaced an object on condition"},
		"takes none": {accepts(func(int, bool) bool { return false }), "acknowledged 0,"},
		"accepts two": {accepts(func(n int, unchanged bool) bool {
			return unchanged || n%8 == 2
		}), "acknowledged 2,"},
		"acknowledges what it forgets":    {forgets, "acknowledged 1,"},
		"checks before the data is there": {early, "acknowledged 8,"},
	} {
		t.Run(name, func(t *testing.T) {
			server := new(counted)
			for range 2 {
				err := probed(t.Context(), c.server(server))
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

// accepts returns a server that handles one write at a time, and stores the nth one if f says so.
func accepts(f func(n int, unchanged bool) bool) func(*counted) driver.Objects {
	return func(s *counted) driver.Objects {
		var mu sync.Mutex
		n := 0
		return flawed{s, func(w write) (driver.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			o, err := s.Read(w.ctx, w.name)
			if n++; err != nil || !f(n, o.Version == w.version) {
				return o, cmp.Or(err, driver.ErrChanged)
			}
			return s.Write(w.ctx, w.name, w.data, o.Version, o.Place)
		}}
	}
}

// forgets is a server that acknowledges the first of several writes, and stores none.
func forgets(s *counted) driver.Objects {
	var n atomic.Int64
	return flawed{s, func(write) (driver.Object, error) {
		if n.Add(1)%8 != 1 {
			return driver.Object{}, driver.ErrChanged
		}
		return driver.Object{Version: "another"}, nil
	}}
}

// early is a server that checks conditions when the first data arrives, and is too quick to be
// caught by writes that are not held up.
func early(s *counted) driver.Objects {
	always := accepts(func(int, bool) bool { return true })(s)
	return flawed{s, func(w write) (driver.Object, error) {
		if o, err := s.Read(w.ctx, w.name); err != nil || o.Version != w.version {
			return o, cmp.Or(err, driver.ErrChanged)
		}
		driver.PartSent(w.ctx)
		return always.Write(w.ctx, w.name, w.data, w.version, w.place)
	}}
}

// Probes by many operators at once do not mislead each other.
func TestProbeAtOnce(t *testing.T) {
	server := &counted{Objects: memstore.Objects{Clock: time.Now}}
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if err := probed(t.Context(), server); err != nil &&
				!errors.Is(err, lease.ErrExists) {
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
	wantErr(t, "create", probed(ctx, flawed{new(counted), func(w write) (driver.Object, error) {
		<-w.ctx.Done()
		return driver.Object{}, w.ctx.Err()
	}}), context.DeadlineExceeded)
}
