package idgen

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// Few calls that generate trace IDs change what other processors read or write: any byte of the
// generator, or the source. Only one goroutine runs here, so any change after a call is its own.
// With more processors each has its own run and its own batch: the cost stays the same. A write
// that changes nothing is not seen.
func TestSharedWritesAreFew(t *testing.T) {
	if raceEnabled {
		t.Skip("it compares memory without synchronization")
	}
	c := newClock(noon)
	s := &tagged{clock: c.time}
	g, _ := c.both(t, WithSource(s))
	shared := unsafe.Slice((*byte)(unsafe.Pointer(g)), unsafe.Sizeof(*g))
	const calls = 200_000
	writes, before, fills := 0, bytes.Clone(shared), s.fills.Load()
	for range calls {
		c.pass(20 * time.Nanosecond)
		g.NewIDs(t.Context())
		if !bytes.Equal(shared, before) || s.fills.Load() != fills {
			copy(before, shared)
			writes, fills = writes+1, s.fills.Load()
		}
	}
	if share := float64(writes) / calls; share > 0.02 || writes == 0 {
		t.Errorf("%.2f %% of the calls write something shared, want at most 2 %%, but some",
			100*share)
	}
}

// A span ID needs one cache line of the generator and one of the processor; a trace ID needs no
// others.
func TestCacheLines(t *testing.T) {
	if strconv.IntSize != 64 {
		t.Skip("the layout is for 64 bits")
	}
	var g Generator
	var b batch
	const line = 64
	for what, end := range map[string]uintptr{
		"the slots": unsafe.Offsetof(g.slots) + unsafe.Sizeof(g.slots),
		"the era": unsafe.Offsetof(g.eras) + unsafe.Offsetof(g.eras.now) +
			unsafe.Sizeof(g.eras.now),
		"the page": unsafe.Offsetof(g.eras) + unsafe.Offsetof(g.eras.page) +
			unsafe.Sizeof(g.eras.page),
		"the IDs": unsafe.Offsetof(b.end) + unsafe.Sizeof(b.end),
		"the run": unsafe.Offsetof(b.run) + unsafe.Sizeof(b.run),
		"the ms":  unsafe.Offsetof(b.ms) + unsafe.Sizeof(b.ms),
	} {
		if end > line {
			t.Errorf("%s: up to byte %d, want at most %d", what, end, line)
		}
	}
	if size := unsafe.Sizeof(slot{}); size%128 != 0 {
		t.Errorf("a slot has %d bytes", size)
	}
}

// A goroutine that stays on its processor gets increasing IDs, although it is preempted while it
// fetches new IDs, and others use the processor in the meantime.
func TestOrderOfAPreemptedGoroutine(t *testing.T) {
	for name, tt := range map[string]struct {
		late  bool // it takes its clear half after the others have used the processor
		taken bool // the processor has another batch when it returns
	}{
		"another batch was here":                {},
		"another batch is here":                 {taken: true},
		"its clear half is the latest":          {late: true},
		"the same, while another batch is here": {late: true, taken: true},
	} {
		c := newClock(noon)
		g, _ := c.both(t)
		last := uint64(0)
		take := func() {
			t.Helper()
			for range 100 { // so that a long run is left
				id, _ := g.NewIDs(t.Context())
				if half(id) <= last {
					t.Fatalf("%s: %016x after %016x", name, half(id), last)
				}
				last = half(id)
			}
		}
		c.pass(time.Millisecond)
		take()
		away := g.detach(procPin())
		take() // by others, with another batch
		if tt.late {
			last, _ = g.prepare(away, 2)
		}
		if !tt.taken {
			g.detach(procPin())
		}
		g.attach(away)
		take()
	}
}

// No clear half repeats when the sequence starts again. The other processor keeps what it has.
func TestRunEndsWithTheSequence(t *testing.T) {
	c := newClock(noon)
	g, _ := c.both(t)
	var away *batch
	other := func() {
		p := procPin()
		g.slots[p].batch, away = away, g.slots[p].batch
		g.unpin(p)
	}
	seen := map[uint64]bool{}
	take := func(n int) {
		t.Helper()
		for range n {
			id, _ := g.NewIDs(t.Context())
			if seen[half(id)] {
				t.Fatalf("the clear half of %s is a duplicate", id)
			}
			seen[half(id)] = true
		}
	}
	c.pass(time.Millisecond)
	take(100)
	other()
	c.add(-time.Hour)
	c.pass(trusted + 4*time.Millisecond)
	if c.late(t, g); g.steps.Load() != 1 {
		t.Fatal("the sequence did not start again")
	}
	clear(seen)
	// the clock is where it was, to the millisecond
	c.add(time.Hour - (trusted + 4*time.Millisecond))
	g.eras.end(g.eras.now.Load()) // the timer has run
	take(500)
	other()
	take(100)
}

// Processors added later have nothing of their own, share what is spare, and waste few IDs of a
// lease.
func TestProcessorsAddedLater(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	s := &tagged{clock: time.Now}
	g := New(WithSource(s))
	runtime.GOMAXPROCS(4 * max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	const workers, each = 16, 20_000
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range each {
				spanOf(g)
				if i%100 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	// The pool drops batches at a collection, and at random under the race detector.
	if fills := s.fills.Load(); fills > 4*workers*each/256 && !raceEnabled {
		t.Errorf("%d fills for %d IDs", fills, workers*each)
	}
}
