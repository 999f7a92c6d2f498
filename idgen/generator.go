package idgen

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Source makes Randflake IDs. A randflake.Generator is one, and so is a
// lease.Keeper.
//
// Fill writes up to len(dst) IDs of one second and returns how many, and the
// second; n < len(dst) comes with an error. It is called on the path of spans
// by many goroutines: it must be safe for concurrent use and never wait.
//
// A source may have a method Generation() uint64. When its value changes, as a
// lease.Keeper's does when the clocks hint that the machine was suspended or
// cloned, IDs made before are not handed out any more: it is looked at whenever
// the clock is, for trace IDs every millisecond and for span IDs every second
// while they are asked for.
type Source interface {
	Fill(dst []randflake.ID) (n int, second time.Time, err error)
}

// Generator makes trace and span IDs; it implements [sdktrace.IDGenerator].
// It is safe for concurrent use, never waits and never fails. Make one a
// process: its trace IDs are in order among themselves.
type Generator struct {
	source Source
	clock  *coarse
	order  order
	old    atomic.Uint64 // IDs given to old records
	// generation is the source's, as far as it is known here.
	generation atomic.Uint64

	shards *shards
	counts counts
	refusals
}

var _ sdktrace.IDGenerator = (*Generator)(nil)

// New returns a generator. Without options it needs nothing and nobody: see
// the package's documentation for what that promises.
func New(opts ...Option) *Generator {
	cfg := newConfig(opts)
	clock := newCoarse(cfg.clock)
	g := &Generator{
		source: cfg.source,
		clock:  clock,
		order:  order{clock: clock},
	}
	g.shards = newShards(&g.counts)
	g.fallback = cfg.fallback
	if g.source == nil {
		g.source = newPrivate(cfg.clock)
	}
	if s, ok := g.source.(interface{ Generation() uint64 }); ok {
		clock.each = func() {
			// Who stood still between the two must not bring an old one back.
			old := g.generation.Load()
			if now := s.Generation(); now != old {
				g.generation.CompareAndSwap(old, now)
			}
		}
	}
	g.register(cfg.meters)
	return g
}

// NewIDs returns the IDs of a new trace's root span. Both are valid. The
// context is not used, but by a fallback that does.
func (g *Generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	now := g.clock.now()
	low, span, ok := g.shards.take(2, 1, now, g.generation.Load())
	if !ok {
		var err error
		if low, span, now, err = g.more(2, 1, now); err != nil {
			return g.randomIDs(ctx, now, err)
		}
	}
	ms := uint64(now - traceid.EpochMillis)
	if ms > maxMillis { // before or after
		return g.randomIDs(ctx, now, errClock)
	}
	return join(g.order.next(ms), low), spanID(span)
}

// NewSpanID returns the ID of a further span. It is valid. Context and trace
// ID are not used, but by a fallback that does.
func (g *Generator) NewSpanID(ctx context.Context, traceID trace.TraceID) trace.SpanID {
	now := g.clock.second() // all that a batch must know
	id, _, ok := g.shards.take(1, 0, now, g.generation.Load())
	if !ok {
		var err error
		if id, _, _, err = g.more(1, 0, now); err != nil {
			return g.randomSpanID(ctx, traceID, err)
		}
	}
	return spanID(id)
}

// more makes new IDs and takes n of them at once, whatever the time, traces of
// them for trace IDs; it returns the first and the last. When their second is
// not that of now, now is read again, so that the halves of a trace ID agree
// even after the process was stopped.
func (g *Generator) more(n, traces int, now int64) (first, last randflake.ID, _ int64, err error) {
	b := g.shards.spare()
	defer g.shards.put(b)
	b.generation = g.generation.Load() // before, so that a change meanwhile counts
	if err := b.fill(g.source, n); err != nil {
		return 0, 0, now, err
	}
	g.recovered()
	second := b.until - time.Second.Milliseconds()
	if now < second || now >= b.until {
		now = g.clock.read()
	}
	g.counts.borrowed.Store(max(second-now, 0))
	first, last, _ = b.take(n, traces, b.from, b.generation)
	return first, last, now, nil
}

var (
	errNoIDs = errors.New("idgen: the source gave no IDs and no reason")
	errClock = errors.New("idgen: the clock is outside of 2020 to 2089: set it")
)
