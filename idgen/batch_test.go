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

// Few calls that generate trace IDs read the wall clock, or change what other processors read or
// write: any byte of the generator, or the source. Only one goroutine runs here, so any change
// after a call is its own. With more processors each has its own run and its own batch: the cost
// stays the same. A write that changes nothing is not seen.
func TestSharedWritesAreFew(t *testing.T) {
	if raceEnabled {
		t.Skip("it compares memory without synchronization")
	}
	c := newClock(noon)
	s := &tagged{clock: c.time}
	g, _ := c.both(t, WithSource(s))
	shared := unsafe.Slice((*byte)(unsafe.Pointer(g)), unsafe.Sizeof(*g))
	const calls = 200_000
	writes, before, fills, reads := 0, bytes.Clone(shared), s.fills.Load(), c.reads
	for range calls {
		c.pass(20 * time.Nanosecond)
		g.NewIDs(t.Context())
		if !bytes.Equal(shared, before) || s.fills.Load() != fills {
			copy(before, shared)
			writes, fills = writes+1, s.fills.Load()
		}
	}
	if c.reads != reads {
		t.Errorf("the wall clock was read %d times in %d µs", c.reads-reads, calls*20/1000)
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
		"the slots":                    unsafe.Offsetof(g.slots) + unsafe.Sizeof(g.slots),
		"the era and the page":         unsafe.Offsetof(g.eras) + unsafe.Offsetof(g.eras.machine),
		"IDs, run and the millisecond": unsafe.Offsetof(b.from),
	} {
		if end > line {
			t.Errorf("%s: up to byte %d, want at most %d", what, end, line)
		}
	}
	if size := unsafe.Sizeof(slot{}); size%128 != 0 {
		t.Errorf("a slot has %d bytes", size)
	}
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
