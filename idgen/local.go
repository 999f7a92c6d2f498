package idgen

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// The first batch of an era has minBatch IDs, and each further one twice as many, up to maxBatch.
// So a processor discards at most minBatch IDs more than it has used.
const (
	minBatch = 256
	maxBatch = 1024
)

// ready holds a processor's state for the next IDs, so that most calls write nothing that another
// processor reads. Most IDs need only its first cache line and that of the ID; the first trace ID
// of a millisecond needs the second line too.
type ready struct {
	era       *era // in which it was checked
	ids       *[maxBatch]randflake.ID
	run       run    // clear halves of the millisecond
	version   uint32 // of the machine's page, as in era
	next, end uint32 // ids[next:end] are ready
	gate      uint32 // of the clock
	since     uint64 // the counter when a clock was read
	last      uint64 // the counter at the last call
	ms        int64  // Unix milliseconds
	from      int64  // Unix milliseconds: the IDs may be used in [from, from+usable)

	// On the monotonic clock:
	begins time.Duration // the millisecond
	read   time.Duration // when the wall clock was read
}

// local is a processor's ready with fields that are rarely needed. It has one owner at a time.
type local struct {
	ready
	size int // of the next batch
}

// unused returns a local without a processor.
func (g *Generator) unused() *local {
	if l, ok := g.spare.Get().(*local); ok {
		return l
	}
	return &local{ready: ready{ids: new([maxBatch]randflake.ID)}, size: minBatch}
}

// usable is how many milliseconds IDs may be used: their second may be borrowed, or held while the
// clock is behind.
const usable = int64((hold + time.Second) / time.Millisecond)

func (r *ready) has(n uint32) bool { return r.next+n <= r.end }

// covers reports whether the IDs may be used in this millisecond.
func (r *ready) covers() bool { return uint64(r.ms-r.from) < uint64(usable) }

// ahead returns by how many milliseconds the IDs' second is ahead.
func (r *ready) ahead() int64 { return r.from + hold.Milliseconds() - r.ms }

// id hands out an ID. At least one must be ready.
func (r *ready) id() randflake.ID {
	r.next++
	return r.ids[(r.next-1)%maxBatch]
}

// set moves r to a millisecond. Another one has a sequence of its own.
func (r *ready) set(ms int64) {
	if ms != r.ms {
		r.ms, r.run = ms, run{}
	}
}

// enter moves l to an era and discards everything from an earlier one.
func (l *local) enter(e *era) {
	l.version = e.version
	if l.era != e {
		l.era, l.size = e, minBatch
		l.next, l.end, l.run = 0, 0, run{}
	}
}

// attempts is how often a call generates IDs that are outdated at once, because the process was
// stopped in the meantime or the machine was restored.
const attempts = 4

// generate prepares n IDs that may be used now. If n is two, it also returns the next clear half of
// a trace ID, which is 0 if the clock is out of range.
func (g *Generator) generate(l *local, n uint32) (high uint64, err error) {
	if g.source == nil {
		return 0, errZero
	}
	at := int64(0)
	for range attempts {
		if g.eras.untimed.Load() || !g.eras.holds(&l.ready) ||
			!g.clock.follow(&l.ready, readCounter()) {
			l.enter(g.eras.current()) // first: whatever changes from here on ends this era
			g.clock.read(&l.ready)
			g.eras.endWith(l.era, l.ms)
		}
		if !l.has(n) || !l.covers() {
			err = g.fill(l)
		}
		if n == 2 && (high == 0 || l.ms != at) { // not taken by an earlier attempt
			high, at = g.high(l), l.ms
		}
		if err != nil || l.has(n) && l.covers() && l.era == g.eras.current() {
			return high, err
		}
	}
	if !l.has(n) || l.era != g.eras.current() {
		return high, errChanging
	}
	return high, nil // the source's clock disagrees with ours: its IDs are unique all the same
}

// fill generates new IDs for l, or none if it returns an error.
func (g *Generator) fill(l *local) error {
	l.next, l.end = 0, 0
	n, second, err := g.source.Fill(l.ids[:l.size])
	switch {
	case err != nil:
		return err
	case n != l.size || !g.nonzero && slices.Contains(l.ids[:n], 0):
		return errSource
	}
	l.end, l.from = uint32(n), second.Add(-hold).UnixMilli()
	l.size = min(2*l.size, maxBatch)
	g.refusals.fromSource.set(false, nil)
	if l.ahead() > 0 || !l.covers() {
		// It is borrowed, or the clock was stepped or this process was stopped.
		g.clock.read(&l.ready)
	}
	g.borrowed.Store(max(l.ahead(), 0))
	return nil
}

// high returns the next clear half of l, or 0 if the clock is out of range.
func (g *Generator) high(l *local) uint64 {
	for l.run.left == 0 && !l.run.extend(&g.order, l.ms) {
		next := g.order.next.Load()
		g.clock.read(&l.ready)
		if floorOf(l.ms) == 0 {
			return 0
		}
		if g.order.follow(next, l.ms) {
			g.steps.Add(1)
			g.eras.end(l.era) // the others may still have the old time
		}
	}
	g.refusals.inRange.set(false, nil)
	return l.run.next()
}

var (
	errSource = errors.New("idgen: the source returned a zero ID, or a different number of IDs " +
		"than requested, without an error")
	errZero     = errors.New("idgen: a zero Generator has no source of IDs: use New")
	errClock    = errors.New("idgen: the clock is outside the range 2020 to 2089: set it")
	errChanging = fmt.Errorf("idgen: the source's generation changed during each of %d attempts "+
		"to generate IDs", attempts)
)
