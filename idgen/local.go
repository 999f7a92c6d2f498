package idgen

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// The first batch of an era has minBatch IDs, and each further one twice as many, up to maxBatch:
// so a processor discards at most minBatch IDs more than it has used.
const (
	minBatch = 256
	maxBatch = 1024
)

// ready is what a processor has ready for the next IDs, so that most calls write nothing that
// another processor reads. Most IDs need only the first cache line of it and that of the ID; the
// first trace ID of a millisecond needs the second line too.
type ready struct {
	era       *era // in which it was checked
	ids       *[maxBatch]randflake.ID
	run       run    // clear halves of the millisecond
	version   uint32 // of the machine's page, as in era
	next, end uint32 // ids[next:end] are ready
	reading          // the millisecond
	from      int64  // Unix milliseconds: the IDs may be used in [from, from+usable)
}

// local is a processor's ready and what is rarely needed. It has one owner at a time.
type local struct {
	ready
	compared moment // when the counter was last compared with the clock
	size     int    // of the next batch
}

// unused returns a local without a processor.
func (g *Generator) unused() *local {
	if l, ok := g.spare.Get().(*local); ok {
		return l
	}
	return &local{ready: ready{ids: new([maxBatch]randflake.ID)}, size: minBatch}
}

// usable is for how many milliseconds IDs may be used: their second may be borrowed, or held while
// the clock is behind.
const usable = int64((hold + time.Second) / time.Millisecond)

func (r *ready) has(n uint32) bool { return r.next+n <= r.end }

// covers reports whether the IDs may be used in this millisecond.
func (r *ready) covers() bool { return uint64(r.ms-r.from) < uint64(usable) }

// ahead returns by how many milliseconds the IDs' second is ahead.
func (r *ready) ahead() int64 { return r.from + hold.Milliseconds() - r.ms }

// id hands out an ID. There must be one.
func (r *ready) id() randflake.ID {
	r.next++
	return r.ids[(r.next-1)%maxBatch]
}

// later moves r to the counter's millisecond, which is a later one. It reports false if the clock
// must be read, or if the ready IDs belong to another second.
func (r *ready) later(count uint64) bool {
	if !r.advance(count) {
		return false
	}
	r.run = run{}
	return r.covers()
}

// begin drops whatever is of an earlier era.
func (l *local) begin(e *era) {
	l.version = e.version
	if l.era != e {
		l.era, l.size = e, minBatch
		l.next, l.end, l.run = 0, 0, run{}
	}
}

// advance moves what is ready here to the counter's millisecond. If only that is due, it reads the
// clock. It reports whether the IDs may be used. A source's Generation is somebody else's code,
// which is not called on a pinned goroutine.
func (g *Generator) advance(here *slot, count uint64) bool {
	if here.later(count) {
		return true
	}
	if !here.covers() || g.eras.source != nil {
		return false
	}
	g.read(&here.ready, &here.local.compared)
	return here.covers() && g.eras.holds(&here.ready)
}

// attempts is how often a call generates IDs if they are outdated at once: the process was stopped
// in the meantime, or the machine was restored.
const attempts = 4

// generate makes n IDs ready that may be used now. For two it returns the next clear half of a
// trace ID too, which is 0 if the clock is out of range.
func (g *Generator) generate(l *local, n uint32) (high uint64, err error) {
	if g.source == nil {
		return 0, errZero
	}
	at := int64(0)
	for range attempts {
		count := g.clock.counter.read()
		if !g.eras.holds(&l.ready) || !l.includes(count) && !l.later(count) {
			l.begin(g.eras.current()) // first: whatever changes from here on ends this era
			g.read(&l.ready, &l.compared)
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

// read reads the clock.
func (g *Generator) read(r *ready, last *moment) {
	before := r.ms
	if right := g.clock.read(&r.reading, last); !right {
		g.eras.end() // the others must not use the counter either
	}
	if r.ms != before {
		r.run = run{}
	}
	g.eras.endWith(r.ms)
}

// fill generates new IDs for l, or none if it returns an error.
func (g *Generator) fill(l *local) error {
	l.next, l.end = 0, 0
	n, second, err := g.source.Fill(l.ids[:l.size])
	switch {
	case err != nil:
		return err
	case n != l.size || slices.Contains(l.ids[:n], 0):
		return errSource
	}
	l.end, l.from = uint32(n), second.Add(-hold).UnixMilli()
	l.size = min(2*l.size, maxBatch)
	g.refusals.fromSource.set(false, nil)
	if l.ahead() > 0 || !l.covers() { // borrowed, or the clock was stepped or this process stopped meanwhile
		g.read(&l.ready, &l.compared)
	}
	g.borrowed.Store(max(l.ahead(), 0))
	return nil
}

// high returns the next clear half of l, or 0 if the clock is out of range.
func (g *Generator) high(l *local) uint64 {
	for l.run.left == 0 && !l.run.extend(&g.order, l.ms) {
		next := g.order.next.Load()
		g.read(&l.ready, &l.compared)
		if floorOf(l.ms) == 0 {
			return 0
		}
		if g.order.follow(next, l.ms) {
			g.steps.Add(1)
			g.eras.end() // the others may still have the old time
			l.begin(g.eras.current())
		}
	}
	g.refusals.inRange.set(false, nil)
	return l.run.next()
}

var (
	errSource   = errors.New("idgen: the source returned a zero ID, or a different number of IDs than requested, without an error")
	errZero     = errors.New("idgen: a zero Generator has no source of IDs: use New")
	errClock    = errors.New("idgen: the clock is outside the range 2020 to 2089: set it")
	errChanging = fmt.Errorf("idgen: the source's generation changed during each of %d attempts to generate IDs", attempts)
)
