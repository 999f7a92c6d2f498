package idgen

import (
	"errors"
	"fmt"
	"time"
	"unsafe" // also for linkname

	"github.com/traceflake/traceflake/randflake"
)

// The first batch of an era has minBatch IDs, and each further one twice as many, up to maxBatch.
// So a processor discards at most minBatch IDs more than it has used.
const (
	minBatch = 256
	maxBatch = 1024
)

// batch holds what a processor (a P of Go's scheduler) needs for the next IDs, so that most calls
// write nothing that another processor reads. It has one owner at a time: the processor in whose
// slot it is, or the goroutine that has detached it. Most IDs need its first cache line and that of
// the ID.
type batch struct {
	era       *era   // in which it was checked
	version   uint32 // of the machine's page, as in era
	next, end uint32 // ids[next:end] are ready
	size      uint32 // of the next fill
	run       run    // clear halves of the millisecond
	since     uint64 // the counter when a clock was read
	last      uint64 // the counter at the last call
	ms        int64  // Unix milliseconds
	from      int64  // Unix milliseconds: the IDs may be used in [from, from+usable)

	// On the monotonic clock:
	begins time.Duration // the millisecond
	read   time.Duration // when the wall clock was read

	ids [maxBatch]randflake.ID
}

// slot has a processor's batch, or nil while a goroutine has it. Only goroutines that are pinned to
// the processor may use it.
//
// A sync.Pool does this too, but pins the goroutine to its processor twice for each ID, once for
// Get and once for Put. runtime.procPin is not part of Go's public interface, but it is on the
// runtime's list of names whose removal or change would break too many packages
// (go.dev/issue/67401).
type slot struct {
	*batch
	// No two processors write to one cache line; they fetch lines in pairs.
	_ [128 - unsafe.Sizeof(uintptr(0))]byte
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// here returns the batch of processor p, or nil. procPin has pinned the goroutine to it, until
// unpin is called. Code between the two must not wait. The two are separate so that the compiler
// inlines them. Processors that were added later have no slot.
func (g *Generator) here(p int) *batch {
	if uint(p) >= uint(len(g.slots)) {
		return nil
	}
	acquire(&g.slots[p])
	return g.slots[p].batch
}

func (g *Generator) unpin(p int) {
	if raceEnabled && uint(p) < uint(len(g.slots)) {
		release(&g.slots[p])
	}
	procUnpin()
}

// detach takes the batch of processor p and unpins the goroutine. If the processor has none, it
// returns a spare one.
func (g *Generator) detach(p int) *batch {
	b := g.here(p)
	if b != nil {
		g.slots[p].batch = nil
	}
	g.unpin(p)
	if b != nil {
		return b
	}
	if b, ok := g.spare.Get().(*batch); ok {
		return b
	}
	return &batch{size: minBatch}
}

// attach gives b to this processor, unless that has another by now. The rest of a run is discarded:
// others may have used a later run here in the meantime, and this goroutine a later one than that
// of the other batch.
func (g *Generator) attach(b *batch) {
	b.run.left = 0
	p := procPin()
	if other := g.here(p); other != nil {
		other.run.left = 0
	} else if uint(p) < uint(len(g.slots)) {
		g.slots[p].batch, b = b, nil
	}
	g.unpin(p)
	if b != nil {
		g.spare.Put(b)
	}
}

// usable is how many milliseconds IDs may be used: their second may be borrowed, or held while the
// clock is behind.
const usable = int64((hold + time.Second) / time.Millisecond)

func (b *batch) has(n uint32) bool { return b.next+n <= b.end }

// covers reports whether the IDs may be used in this millisecond.
func (b *batch) covers() bool { return uint64(b.ms-b.from) < uint64(usable) }

// ahead returns by how many milliseconds the IDs' second is ahead.
func (b *batch) ahead() int64 { return b.from + hold.Milliseconds() - b.ms }

// id hands out an ID. At least one must be ready.
func (b *batch) id() uint64 {
	b.next++
	return uint64(b.ids[(b.next-1)%maxBatch])
}

// set moves b to a millisecond. A run is of one millisecond only.
func (b *batch) set(ms int64) {
	if ms != b.ms {
		b.ms, b.run = ms, run{}
	}
}

// enter moves b to an era and discards everything from an earlier one.
func (b *batch) enter(e *era) {
	b.version = e.version
	if b.era != e {
		b.era, b.size = e, minBatch
		b.next, b.end, b.run = 0, 0, run{}
	}
}

// attempts is how often a call generates IDs that are outdated at once, because the process was
// stopped in the meantime or the machine was restored.
const attempts = 4

// prepare generates n IDs that may be used now. If n is two, it also returns the next clear half of
// a trace ID, which is 0 if the clock is out of range.
func (g *Generator) prepare(b *batch, n uint32) (high uint64, err error) {
	if g.source == nil {
		return 0, errZero
	}
	for range attempts {
		if !g.eras.holds(b) || !g.clock.follow(b, readCounter()) {
			b.enter(g.eras.current()) // first: later changes end this era
			g.clock.read(b)
			g.eras.endWith(b.era, b.ms)
		}
		if !b.has(n) || !b.covers() {
			err = g.fill(b)
		}
		if n == 2 {
			high = g.high(b)
		}
		if err != nil || b.has(n) && b.covers() && b.era == g.eras.current() {
			return high, err
		}
	}
	if !b.has(n) || b.era != g.eras.current() {
		return high, errChanging
	}
	return high, nil // the source's clock disagrees with ours: its IDs are unique all the same
}

// fill generates new IDs for b, or none if it returns an error.
func (g *Generator) fill(b *batch) error {
	b.next, b.end = 0, 0
	n, second, err := g.source.Fill(b.ids[:b.size])
	switch {
	case err != nil:
		return err
	case n != int(b.size):
		return errSource
	}
	b.end, b.from = uint32(n), second.Add(-hold).UnixMilli()
	b.size = min(2*b.size, maxBatch)
	g.refusals.fromSource.set(false, nil)
	if b.ahead() > 0 || !b.covers() {
		// It is borrowed, or the clock was stepped or this process was stopped.
		g.clock.read(b)
	}
	g.borrowed.Store(max(b.ahead(), 0))
	return nil
}

// high returns a clear half, or 0 if the clock is out of range.
func (g *Generator) high(b *batch) uint64 {
	for {
		if word, ok := g.sequence.take(b.ms, 1); ok {
			g.refusals.inRange.set(false, nil)
			return word
		}
		next := g.sequence.next.Load()
		g.clock.read(b)
		if floorOf(b.ms) == 0 {
			return 0
		}
		if g.sequence.follow(next, b.ms) {
			g.steps.Add(1)
			g.eras.end(b.era) // the others may still have the old time
		}
	}
}

var (
	errSource = errors.New("idgen: the source returned a different number of IDs than requested, " +
		"without an error")
	errZero     = errors.New("idgen: a zero Generator has no source of IDs: use New")
	errClock    = errors.New("idgen: the clock is outside the range 2020 to 2089: set it")
	errChanging = fmt.Errorf("idgen: the source's generation changed during each of %d attempts "+
		"to generate IDs", attempts)
)
