package idgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/randflake"
)

// Source makes Randflake IDs. A randflake.Generator is one, and so is a
// lease.Keeper.
//
// Fill writes up to len(dst) IDs of one second and returns how many, and the
// second; n < len(dst) only with a non-nil error. It is called by many
// goroutines whenever spans start: it must be safe for concurrent use and never
// wait.
//
// A source may also be [Generational].
type Source interface {
	Fill(dst []randflake.ID) (n int, second time.Time, err error)
}

// Generational is a [Source] that can invalidate the IDs it made before. A
// lease.Keeper is one: its generation changes when the machine seems to have
// been suspended or cloned.
//
// When the number changes, the IDs that a [Generator] has ready are discarded.
// Generation is called after each Fill, at least every 16 ms while trace IDs
// are made and every second while span IDs are. It must be safe for concurrent
// use, never wait, and not use the Generator.
type Generational interface {
	Source
	Generation() uint64
}

// Generator makes trace and span IDs; it implements [sdktrace.IDGenerator]. It
// is safe for concurrent use, never waits and never fails. Make one per
// process: order holds only among the trace IDs of one generator.
type Generator struct {
	source  Source
	private *private     // the source, if it is the zero-configuration one
	ages    Generational // the source, if it is Generational
	clock   *clock
	shards  *shards
	machine *vmclock.Machine
	order   order
	old     atomic.Uint64 // IDs made for old records

	// life changes when the IDs made before must no longer be used: the
	// source's generation or the machine's has changed.
	life                 atomic.Uint64
	changing             sync.Mutex
	generation, machines atomic.Uint64 // the last known

	counts  counts
	metrics metric.Registration
	refusals
}

var _ sdktrace.IDGenerator = (*Generator)(nil)

// New returns a generator. Without options it needs no configuration and no
// store: see the package documentation for what that guarantees.
func New(opts ...Option) *Generator {
	cfg := newConfig(opts)
	g := &Generator{
		source:  cfg.source,
		clock:   newClock(cfg.clock, cfg.counter),
		machine: cfg.machine,
	}
	g.machines.Store(g.machine.Generation()) // before a secret is drawn
	g.shards = newShards(&g.counts)
	g.fallback = cfg.fallback
	if g.source == nil {
		g.private = newPrivate(cfg.clock)
		g.source = g.private
	}
	g.ages, _ = g.source.(Generational)
	g.generation.Store(g.sourceGeneration())
	g.register(cfg.meters)
	return g
}

// Close unregisters the metrics and stops the timer. The generator still makes
// IDs, but more slowly: it reads the clock for each. Close may be called again.
func (g *Generator) Close() error {
	g.clock.close()
	if g.metrics == nil {
		return nil
	}
	if err := g.metrics.Unregister(); err != nil {
		return fmt.Errorf("idgen: close: %w", err)
	}
	return nil
}

// NewIDs returns the IDs of a new trace's root span. Both are valid. ctx is
// only passed to the fallback.
func (g *Generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	s, p := g.shards.pin()
	count := g.clock.counter.read()
	if g.ready(s, 2) && s.at(count) && (s.word < s.last || s.run(&g.order)) {
		high := s.word
		s.word++
		low, span := s.take(2, 1)
		g.shards.unpin(s, p)
		return join(high, low), spanID(span)
	}
	return g.newIDs(ctx, g.shards.take(s, p), count)
}

// NewSpanID returns the ID of a further span. It is valid. ctx and traceID are
// only passed to the fallback.
func (g *Generator) NewSpanID(ctx context.Context, traceID trace.TraceID) trace.SpanID {
	s, p := g.shards.pin()
	if g.ready(s, 1) {
		id, _ := s.take(1, 0)
		g.shards.unpin(s, p)
		return spanID(id)
	}
	s = g.shards.take(s, p)
	id, _, err := g.more(s, 1, 0, g.clock.counter.read())
	g.shards.put(s)
	if err != nil {
		return g.randomSpanID(ctx, traceID, err)
	}
	return spanID(id)
}

// ready reports whether s, which may be nil, has n usable IDs.
func (g *Generator) ready(s *stock, n int) bool {
	return s != nil && s.next+n <= s.end && g.current(s)
}

// current reports whether nothing has changed since s was last checked.
func (g *Generator) current(s *stock) bool {
	return s.epoch == g.clock.epoch.Load() && s.version == g.machine.Version()
}

// newIDs is the slow path of NewIDs, taken when s is not ready. The caller has read count from the
// counter.
func (g *Generator) newIDs(ctx context.Context, s *stock, count uint64) (trace.TraceID, trace.SpanID) {
	low, span, err := g.more(s, 2, 1, count)
	high := g.high(s)
	g.shards.put(s)
	if err == nil && high == 0 {
		err = errClock
	}
	if err != nil {
		return g.randomIDs(ctx, high, err)
	}
	return join(high, low), spanID(span)
}

// more takes n IDs from s, of which traces are for trace IDs, and returns the first and the last.
// It makes new IDs first if necessary, and uses them whatever their second, which may be borrowed.
func (g *Generator) more(s *stock, n, traces int, count uint64) (first, last randflake.ID, err error) {
	if !g.current(s) || !s.at(count) {
		g.look(s, count)
	}
	if s.next+n <= s.end && s.life == g.life.Load() && s.from <= s.ms && s.ms < s.until {
		first, last = s.take(n, traces)
		return first, last, nil
	}
	g.counts.used(s)
	for range 3 {
		s.life = g.life.Load()
		if err := s.fill(g.source, n); err != nil {
			return 0, 0, err
		}
		g.recovered()
		second := s.until - time.Second.Milliseconds()
		if s.ms < second || s.ms >= s.until { // the process may have been stopped
			g.look(s, g.clock.counter.read())
		}
		g.counts.borrowed.Store(max(second-s.ms, 0))
		g.check()
		if s.life == g.life.Load() {
			first, last = s.take(n, traces)
			return first, last, nil
		}
	}
	return 0, 0, errChanging
}

// look reads the clock for s, after it has checked whether the ready IDs of s may be used. The
// next call notices any change made in the meantime. count is the counter's value a moment ago.
func (g *Generator) look(s *stock, count uint64) {
	ms, epoch := s.ms, s.epoch
	s.version, s.epoch = g.machine.Version(), g.clock.epoch.Load()
	g.check()
	g.clock.read(&s.reading, count)
	if s.ms != ms || s.epoch != epoch { // the order may have started again
		s.drop()
	}
	if !g.clock.arm(s.ms) {
		s.epoch = 0
	}
}

// high returns the next clear half of s, or 0 if the clock is out of range.
func (g *Generator) high(s *stock) uint64 {
	for s.word >= s.last && !s.run(&g.order) {
		next := g.order.next.Load()
		g.look(s, g.clock.counter.read())
		if floorOf(s.ms) == 0 {
			return 0
		}
		if g.order.follow(next, s.ms) {
			g.counts.steps.Add(1)
			g.clock.epoch.Add(1) // other processors may still have the old time
		}
	}
	s.word++
	return s.word - 1
}

// check invalidates the earlier IDs if the machine's generation or the source's
// has changed. When it returns they are invalid, whichever goroutine noticed
// first.
func (g *Generator) check() {
	machines, generation := g.machines.Load(), g.generation.Load() // before the values they are compared with
	if g.machine.Generation() == machines && g.sourceGeneration() == generation {
		return
	}
	if g.change() {
		otel.Handle(errRestored)
	}
}

// change reports whether the machine was restored.
func (g *Generator) change() (restored bool) {
	g.changing.Lock()
	defer g.changing.Unlock()
	machines, generation := g.machine.Generation(), g.sourceGeneration()
	restored = machines != g.machines.Load()
	if !restored && generation == g.generation.Load() {
		return false // another goroutine was first
	}
	if restored {
		g.counts.restores.Add(1)
		if g.private != nil {
			g.private.renew()
			time.AfterFunc(redrawAfter, g.redraw)
		}
	}
	g.life.Add(1)
	g.clock.epoch.Add(1)
	g.machines.Store(machines) // last: from here on others need not wait
	g.generation.Store(generation)
	return restored
}

// redrawAfter is the delay after a restore before a second secret is drawn: the kernel is notified
// of the restore a moment later than this process notices it. Until then it may return the same
// bytes in every copy.
const redrawAfter = time.Second

// redraw takes a new secret.
func (g *Generator) redraw() {
	g.changing.Lock()
	defer g.changing.Unlock()
	g.private.renew()
	g.life.Add(1)
	g.clock.epoch.Add(1)
}

func (g *Generator) sourceGeneration() uint64 {
	if g.ages == nil {
		return 0
	}
	return g.ages.Generation()
}

var (
	errNoIDs    = errors.New("idgen: the source returned no IDs and no error")
	errClock    = errors.New("idgen: the clock is outside the range 2020 to 2089: set it")
	errChanging = errors.New("idgen: the generation changed during each of three attempts to make IDs")
	errRestored = errors.New("idgen: this machine was restored from a snapshot: " +
		"IDs made before it are discarded")
)
