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
	// By processor, or none with a test's clock. They and the first fields of eras share a cache
	// line.
	slots    []slot
	eras     eras
	config   // zero in a zero Generator
	sequence sequence
	random   random
	spare    sync.Pool // of batches without a processor

	refusals   refusals
	backfilled atomic.Uint64 // IDs for old records
	borrowed   atomic.Int64  // ms by which the newest batch is ahead of the clock
	steps      atomic.Int64  // steps of the clock back by more than hold
	metrics    metric.Registration
}

// New returns a generator. Without options it needs no configuration and no store; the package
// documentation says what it then guarantees.
func New(opts ...Option) *Generator {
	g := &Generator{config: config{machine: vmclock.System(), entropy: entropy.Read}}
	for _, opt := range append([]Option{WithClock(nil)}, opts...) {
		if opt != nil {
			opt(&g.config)
		}
	}
	if g.after != nil { // otherwise nothing ends what a processor has
		g.slots = make([]slot, max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	}
	g.eras.start(&g.config) // before a secret is drawn
	g.random.renew(g.entropy)
	if g.source == nil {
		g.source = newPrivate(g.clock.now, g.entropy)
	}
	g.eras.renew = func() {
		if own, ok := g.source.(*private); ok {
			own.renew()
		}
		g.random.renew(g.entropy)
	}
	if err := g.register(g.meters); err != nil { // it works without metrics
		g.eras.reports.Add(fmt.Errorf("idgen: metrics: %w", err))
	}
	return g
}

// Close unregisters the metrics. The generator still generates IDs. Close may be called again.
func (g *Generator) Close() error {
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
//
// The results are filled in place: assembling an ID in a temporary costs a stall, because one
// 16-byte load waits for two 8-byte stores.
func (g *Generator) NewIDs(context.Context) (id trace.TraceID, span trace.SpanID) {
	p := procPin()
	if b := g.here(p); b != nil && b.has(2) && g.eras.current(b) {
		count := readCounter()
		if (b.stays(count, g.clock.gate) || g.clock.follow(b, count) && b.covers()) &&
			(b.run.left > 0 || b.run.extend(&g.sequence, b.ms)) {
			binary.BigEndian.PutUint64(id[:8], b.run.next())
			binary.BigEndian.PutUint64(id[8:], b.id())
			binary.BigEndian.PutUint64(span[:], b.id())
			g.unpin(p)
			return id, span
		}
	}
	return g.slow(p, 2)
}

// NewSpanID returns the ID of a further span. It is valid. ctx and traceID are not used.
func (g *Generator) NewSpanID(context.Context, trace.TraceID) (span trace.SpanID) {
	p := procPin()
	if b := g.here(p); b != nil && b.has(1) && g.eras.current(b) {
		binary.BigEndian.PutUint64(span[:], b.id())
		g.unpin(p)
		return span
	}
	_, span = g.slow(p, 1)
	return span
}

// NewTraceIDAt returns a trace ID for a record that predates tracing: its clear half encodes t, to
// the millisecond, and its low half is a current ID. So the ID sorts among those of its time, is as
// unique as any other, and decodes to both times; a [traceid.Verifier] refuses it. The IDs of a
// millisecond follow the order of the calls, except that the sequence, which all milliseconds
// share, starts again after every 2^23-1 calls. It returns [traceid.ErrOutOfRange] if no trace ID
// can have this time.
func (g *Generator) NewTraceIDAt(t time.Time) (trace.TraceID, error) {
	_, span := g.slow(procPin(), 1)
	low := randflake.ID(binary.BigEndian.Uint64(span[:]))
	sequence := (g.backfilled.Add(1) - 1) % layout.MaxSequence
	return traceid.New(t, uint32(sequence)+1, low) // 0 is no sequence of the first millisecond
}
