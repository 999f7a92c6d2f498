package idgen

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/vmclock"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Generator generates trace and span IDs: it is an IDGenerator of OpenTelemetry's SDK. It is safe
// for concurrent use, never waits and never fails. Create one per process with [New]: order holds
// only among the trace IDs of one generator. A zero Generator generates random IDs.
type Generator struct {
	slots  []slot // by processor; these and the first fields of eras share a cache line
	eras   eras
	clock  clock
	source Source // nil in a zero Generator
	// nonzero means that the source is one of package randflake's, which skip the ID zero.
	nonzero bool
	order   order
	random  random
	spare   sync.Pool // of locals without a processor

	refusals   refusals
	backfilled atomic.Uint64 // IDs for old records
	borrowed   atomic.Int64  // ms by which the newest batch is ahead of the clock
	steps      atomic.Int64  // steps of the clock back by more than hold
	metrics    metric.Registration
}

// New returns a generator. Without options it needs no configuration and no store; the package
// documentation says what it then guarantees.
func New(opts ...Option) *Generator {
	born := time.Now()
	cfg := config{machine: vmclock.System(), entropy: entropy.Read, kernel: kernelBits}
	cfg.elapsed = func() time.Duration { return time.Since(born) }
	WithClock(nil)(&cfg)
	for _, opt := range opts {
		if opt != nil {
			opt(&cfg)
		}
	}
	g := &Generator{source: cfg.source, clock: cfg.clock}
	g.slots = make([]slot, max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	g.eras.start(cfg.machine, cfg.source, cfg.after) // before a secret is drawn
	g.random.kernel = cfg.kernel
	g.random.renew(cfg.entropy)
	_, g.nonzero = g.source.(*randflake.Generator)
	if g.source == nil {
		g.source, g.nonzero = newPrivate(cfg.now, cfg.entropy), true
	}
	g.eras.renew = func() {
		if own, ok := g.source.(*private); ok {
			own.renew()
		}
		g.random.renew(cfg.entropy)
	}
	if err := g.register(cfg.meters); err != nil { // it works without metrics
		g.eras.reports.Add(fmt.Errorf("idgen: metrics: %w", err))
	}
	return g
}

// Close unregisters the metrics and starts no further timers. The generator still generates IDs,
// but more slowly, because it reads the clock for each. Close may be called again.
func (g *Generator) Close() error {
	if g.source != nil {
		g.eras.close()
	}
	for _, q := range []*reports.Queue{
		&g.eras.reports, &g.refusals.fromSource.reports, &g.refusals.inRange.reports,
	} {
		q.Flush()
	}
	if g.metrics == nil {
		return nil
	}
	if err := g.metrics.Unregister(); err != nil {
		return fmt.Errorf("idgen: close: %w", err)
	}
	return nil
}

// OnRestore must be called after this process was restored from a snapshot. When it returns,
// whatever was generated, leased or drawn before is discarded: ready IDs, the secret of zero
// configuration, and the leases of a [Source] such as a lease.Keeper. Call it in the platform's
// hook that runs after a restore, before the process serves anything. If Linux's vmclock
// reports restores, the call is not needed.
func (g *Generator) OnRestore() {
	if s := g.eras.source; s != nil {
		s.OnRestore() // first: IDs that it generates in the meantime belong to the era that ends
	}
	if g.source != nil {
		g.eras.change(true)
	}
}

// NewIDs returns the IDs of a new trace's root span. Both are valid. ctx is not used.
func (g *Generator) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	here := g.here(procPin())
	if here.has(2) && g.eras.holds(&here.ready) {
		count := readCounter()
		if (here.stays(count) || g.clock.follow(&here.ready, count) && here.covers()) &&
			(here.run.left > 0 || here.run.extend(&g.order, here.ms)) {
			high, low, span := here.run.next(), here.id(), here.id()
			g.unpin(here)
			return join(high, low), spanID(span)
		}
	}
	high, ids := g.slow(here, 2)
	return join(high, ids[0]), spanID(ids[1])
}

// NewSpanID returns the ID of a further span. It is valid. ctx and traceID are not used.
func (g *Generator) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	here := g.here(procPin())
	if here.has(1) && g.eras.holds(&here.ready) {
		id := here.id()
		g.unpin(here)
		return spanID(id)
	}
	_, ids := g.slow(here, 1)
	return spanID(ids[0])
}

// NewTraceIDAt returns a trace ID for a record that predates tracing: its clear half encodes t, to
// the millisecond, and its low half is a current ID. So the ID sorts among those of its time, is as
// unique as any other, and decodes to both times; a [traceid.Verifier] refuses it. The IDs of a
// millisecond follow the order of the calls, except that the sequence, which all milliseconds
// share, starts again after every 2^23-1 calls. It returns [traceid.ErrOutOfRange] if no trace ID
// can have this time.
func (g *Generator) NewTraceIDAt(t time.Time) (trace.TraceID, error) {
	_, ids := g.slow(g.here(procPin()), 1)
	sequence := (g.backfilled.Add(1) - 1) % layout.MaxSequence
	return traceid.New(t, uint32(sequence)+1, ids[0]) // 0 is no sequence of the first millisecond
}

// slow returns IDs if none is ready here, and unpins the goroutine: two IDs and a clear half for a
// trace, or one ID for a span.
func (g *Generator) slow(here *slot, n uint32) (high uint64, ids [2]randflake.ID) {
	l := g.detach(here)
	high, err := g.generate(l, n)
	for i := range ids[:n] {
		if err == nil {
			ids[i] = l.id()
		}
	}
	g.attach(l, !g.eras.untimed.Load())
	if n == 2 && high == 0 {
		// A wrong time would sort all such IDs into one place; random ones sort anywhere.
		high = uint64(g.random.id())
		if err == nil {
			err = errClock
		}
	}
	if err != nil {
		g.refusals.add(err)
		for i := range ids[:n] {
			ids[i] = g.random.id()
		}
	}
	return high, ids
}

// join returns the trace ID of two halves, in the layout that package traceid defines.
func join(high uint64, low randflake.ID) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], uint64(low))
	return id
}

func spanID(id randflake.ID) (s trace.SpanID) {
	binary.BigEndian.PutUint64(s[:], uint64(id))
	return s
}
