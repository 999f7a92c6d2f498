package xtraceid

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/reports"
)

type propagator struct {
	config
	names
	lost    atomic.Bool // errLost was reported
	reports reports.Queue
}

// New returns a propagator for the trace ID header and B3. It is safe for concurrent use. The first
// B3 without a sampling decision is reported to otel.Handle unless [WithDeferredSampled] is set.
func New(opts ...Option) propagation.TextMapPropagator {
	c := config{header: DefaultHeader, encoding: b3.B3MultipleHeader}
	for _, o := range opts {
		if o != nil {
			o.propagator(&c)
		}
	}
	return &propagator{config: c, names: newNames(c.header)}
}

// Fields returns the keys that Inject may write, the trace ID header first.
func (p *propagator) Fields() []string {
	first, end := b3Single, b3ParentSpanID
	switch p.encoding {
	case b3.B3SingleHeader:
		end = b3TraceID
	case b3.B3MultipleHeader:
		first = b3TraceID
	}
	return append([]string{p.header}, p.text[first:end]...)
}

// Inject writes the context's span into carrier, or nothing if ctx has no span.
func (p *propagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() && (!sc.IsRemote() || !sc.HasTraceID()) {
		return // a remote trace ID without a span is forwarded, so that the trace is not lost here
	}
	out := &headers{ours: sc.TraceID().String()}
	if sc.IsValid() {
		p.writeB3(out, sc, b3Decision(ctx, sc))
	}
	p.write(carrier, out)
}
