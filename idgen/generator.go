package idgen

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
)

// Source generates Randflake IDs. A randflake.Generator is one, and so is a
// lease.Keeper.
//
// Fill writes up to len(dst) IDs of one second and returns how many, and the
// second; n < len(dst) only with a non-nil error. It is called by many
// goroutines whenever spans start: it must be safe for concurrent use and never
// wait.
//
// A source may also be [Generational] and a [Restorer].
type Source interface {
	Fill(dst []randflake.ID) (n int, second time.Time, err error)
}

// Generational is a [Source] that can invalidate the IDs it returned before. A
// lease.Keeper is one: its generation changes when the machine seems to have
// been suspended or cloned.
//
// When the number changes, the IDs that a [Generator] has ready are discarded.
// Generation is called after each Fill, at least every 16 ms while trace IDs
// are generated and every second while span IDs are. It must be safe for
// concurrent use, never wait, and not use the Generator.
type Generational interface {
	Source
	Generation() uint64
}

// Restorer is a [Source] that can be told that this process was restored from a
// snapshot. When Restored returns, Fill returns no ID that depends on anything
// from before the call: no lease and no secret. It must be safe for concurrent
// use and not use the Generator.
type Restorer interface {
	Source
	Restored()
}

// Generator generates trace and span IDs; it implements [sdktrace.IDGenerator].
// It is safe for concurrent use, never waits and never fails. Create one per
// process: order holds only among the trace IDs of one generator.
type Generator struct {
	source Source
	clock  clock
	valid  validity
	locals locals
	order  order
	random random

	refusals   refusals
	backfilled atomic.Uint64 // IDs for old records
	borrowed   atomic.Int64  // ms by which the newest batch is ahead of the clock
	steps      atomic.Int64  // steps of the clock back by more than hold
	metrics    metric.Registration
}

var _ sdktrace.IDGenerator = (*Generator)(nil)

// local is what one processor has ready, so that most calls write nothing that
// another processor reads. It has one owner at a time.
type local struct {
	seen          // when this was last checked
	now   reading // the millisecond
	run   run     // clear halves of it
	batch batch   // IDs of its second
}

// New returns a generator. Without options it needs no configuration and no
// store: see the package documentation for what that guarantees.
func New(opts ...Option) *Generator {
	cfg := newConfig(opts)
	g := &Generator{source: cfg.source}
	g.clock.start(cfg.clock, cfg.counter)
	g.valid.start(cfg.machine, cfg.source, cfg.timed)
	g.valid.life.Store(new(g.valid.generations())) // before a secret is drawn
	g.random.kernel = cfg.kernel
	g.random.renew(cfg.entropy)
	if g.source == nil {
		g.source = newPrivate(cfg.clock, cfg.entropy)
	}
	g.valid.renew = func() {
		if own, ok := g.source.(*private); ok {
			own.renew()
		}
		g.random.renew(cfg.entropy)
	}
	g.locals.start()
	if err := g.register(cfg.meters); err != nil { // it works without metrics
		otel.Handle(fmt.Errorf("idgen: metrics: %w", err))
	}
	return g
}

// Close unregisters the metrics and stops the timer. The generator still
// generates IDs, but more slowly: it reads the clock for each. Close may be
// called again.
func (g *Generator) Close() error {
	g.valid.close()
	if g.metrics == nil {
		return nil
	}
	if err := g.metrics.Unregister(); err != nil {
		return fmt.Errorf("idgen: close: %w", err)
	}
	return nil
}

// Restored must be called after this process was restored from a snapshot.
// When it returns, whatever was generated, leased or drawn before is discarded:
// ready IDs, the secret of zero configuration, and the leases of a source that
// is a [Restorer], as a lease.Keeper is. Call it in the platform's hook that
// runs after a restore, before the process serves anything. If Linux's vmclock
// reports restores, the call is not needed.
func (g *Generator) Restored() {
	if s, ok := g.source.(Restorer); ok {
		s.Restored()
	}
	g.valid.change(true)
}

// NewIDs returns the IDs of a new trace's root span. Both are valid. ctx is not
// used.
func (g *Generator) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	here := g.locals.pin()
	l, count := here.local, g.clock.counter.read()
	if l != nil && g.valid.holds(l.seen) && l.at(count) && l.batch.has(2) &&
		(l.run.has(l.now.ms) || l.run.extend(&g.order, l.now.ms)) {
		high := l.run.next()
		low, span := l.batch.take(2)
		g.locals.unpin(here)
		return join(high, low), spanID(span)
	}
	return g.newIDs(g.locals.take(here), count)
}

// NewSpanID returns the ID of a further span. It is valid. ctx and traceID are
// not used.
func (g *Generator) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	here := g.locals.pin()
	if l := here.local; l != nil && g.valid.holds(l.seen) && l.batch.has(1) {
		id, _ := l.batch.take(1)
		g.locals.unpin(here)
		return spanID(id)
	}
	return spanID(g.newID(g.locals.take(here)))
}

// at moves l to the millisecond of the counter. It reports false if the clock must be read, or if
// the ready IDs belong to another second.
func (l *local) at(count uint64) bool {
	return count-l.now.since < l.now.ticks || l.advance(count)
}

func (l *local) advance(count uint64) bool {
	return l.now.advance(count) && l.batch.covers(l.now.ms)
}

// newIDs is NewIDs if l is not ready. The caller has read count from the counter, and owns l.
func (g *Generator) newIDs(l *local, count uint64) (trace.TraceID, trace.SpanID) {
	high, err := g.prepare(l, 2, true, count)
	var low, span randflake.ID
	if err == nil {
		low, span = l.batch.take(2)
	}
	g.locals.put(l)
	if high == 0 {
		// A wrong time would sort all such IDs into one place; random ones sort anywhere.
		high = uint64(g.random.id())
		if err == nil {
			err = errClock
		}
	}
	if err != nil {
		g.refusals.add(err)
		low, span = g.random.id(), g.random.id()
	}
	return join(high, low), spanID(span)
}

// newID returns an ID of the source, and puts l back, which the caller owns.
func (g *Generator) newID(l *local) (id randflake.ID) {
	_, err := g.prepare(l, 1, false, g.clock.counter.read())
	if err == nil {
		id, _ = l.batch.take(1)
	}
	g.locals.put(l)
	if err != nil {
		g.refusals.add(err)
		id = g.random.id()
	}
	return id
}

// attempts is how often a call generates IDs if they are outdated at once: the process was stopped
// in the meantime, or the machine was restored.
const attempts = 3

// prepare brings l up to date: n IDs of the current second are ready. It returns the next clear
// half too if a trace needs one; that is 0 if the clock is out of range.
func (g *Generator) prepare(l *local, n int, trace bool, count uint64) (high uint64, err error) {
	if !g.valid.holds(l.seen) || !l.at(count) {
		g.refresh(l, count)
	}
	for range attempts {
		if !l.batch.has(n) || !l.batch.covers(l.now.ms) {
			err = g.fill(l, n)
		}
		if trace {
			high = g.high(l)
		}
		if err != nil || l.batch.has(n) && l.batch.covers(l.now.ms) {
			return high, err
		}
	}
	if !l.batch.has(n) {
		return high, errChanging
	}
	return high, nil // the source's clock disagrees with ours: its IDs are unique all the same
}

// fill generates new IDs for l: at least n, or none if it returns an error. It drops them at once
// if a new life has begun.
func (g *Generator) fill(l *local, n int) error {
	l.batch.life = g.valid.current()
	if err := l.batch.fill(g.source, n); err != nil {
		return err
	}
	g.refusals.fromSource.ends()
	if !l.batch.current(l.now.ms) { // borrowed, or the process was stopped meanwhile
		g.refresh(l, g.clock.counter.read())
	}
	g.borrowed.Store(max(l.batch.ahead(l.now.ms), 0))
	if g.valid.current() != l.batch.life {
		l.batch.drop()
	}
	return nil
}

// refresh checks whether the ready IDs of l may still be used, and reads the clock. count is the
// counter's value a moment ago.
func (g *Generator) refresh(l *local, count uint64) {
	now := g.valid.see() // first: the next call notices whatever changes from here on
	if l.batch.life != g.valid.current() {
		l.batch.drop()
	}
	if l.epoch != now.epoch { // the order may have started again
		l.run = run{}
	}
	if right := g.clock.read(&l.now, count); !right {
		g.valid.end() // the others must not use the counter either
	}
	l.seen = now
	if !g.valid.endAfter(l.now.ms) {
		l.seen = seen{}
	}
}

// high returns the next clear half of l, or 0 if the clock is out of range.
func (g *Generator) high(l *local) uint64 {
	for !l.run.has(l.now.ms) && !l.run.extend(&g.order, l.now.ms) {
		next := g.order.next.Load()
		g.refresh(l, g.clock.counter.read())
		if floorOf(l.now.ms) == 0 {
			return 0
		}
		if g.order.follow(next, l.now.ms) {
			g.steps.Add(1)
			g.valid.end() // the others may still have the old time
		}
	}
	g.refusals.inRange.ends()
	return l.run.next()
}

var (
	errClock    = errors.New("idgen: the clock is outside the range 2020 to 2089: set it")
	errChanging = fmt.Errorf("idgen: the source's generation changed during each of %d attempts to generate IDs", attempts)
)
