package idgen

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"
)

// slow returns IDs if none is ready on processor p, and unpins the goroutine: n is two for a trace
// and its first span, and one for a span.
func (g *Generator) slow(p int, n uint32) (id trace.TraceID, span trace.SpanID) {
	b := g.detach(p)
	high, err := g.prepare(b, n)
	next := b.id
	if n == 2 && high == 0 {
		// A wrong time would sort all such IDs into one place; random ones sort anywhere.
		high = g.random.id()
		if err == nil {
			err = errClock
		}
	}
	if err != nil {
		g.refusals.add(err)
		next = g.random.id
	}
	if n == 2 {
		binary.BigEndian.PutUint64(id[:8], high)
		binary.BigEndian.PutUint64(id[8:], next())
	}
	binary.BigEndian.PutUint64(span[:], next())
	g.attach(b)
	return id, span
}

// attempts is how often a call retries when its IDs are outdated before it returns, because the
// process was stopped in the meantime or the machine was restored.
const attempts = 4

// prepare readies n IDs in b. If n is two, it also returns the next clear half of a trace ID, which
// is 0 if the clock is out of range. It ends in one of four ways:
//
//   - ready: the IDs belong to the current era and millisecond;
//   - refused: the source returns an error;
//   - clocks disagree: the IDs belong to the current era, but by the source's clock not to this
//     millisecond. They are unique all the same;
//   - changing: the era ended during each attempt.
func (g *Generator) prepare(b *batch, n uint32) (high uint64, err error) {
	if g.source == nil {
		return 0, errZero
	}
	current := false
	for range attempts {
		g.update(b)
		if !b.ready(n) {
			err = g.fill(b)
		}
		if n == 2 {
			high = g.high(b)
		}
		current = b.era == g.eras.latest()
		switch {
		case err != nil:
			return high, err // refused
		case current && b.ready(n):
			return high, nil // ready
		}
	}
	if current && b.has(n) {
		return high, nil // clocks disagree
	}
	return high, errChanging
}

// update moves b to the current era and millisecond.
func (g *Generator) update(b *batch) {
	if g.eras.current(b) && g.clock.follow(b, readCounter()) {
		return
	}
	b.enter(g.eras.latest()) // first: later changes end this era
	g.clock.read(b)
	g.eras.endWith(b.era, b.ms)
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
