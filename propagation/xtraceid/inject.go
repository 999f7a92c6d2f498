package xtraceid

import (
	"context"
	"encoding/binary"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Inject writes the context's span into carrier, or nothing if ctx has no span.
func (p *propagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() && (!sc.IsRemote() || !sc.HasTraceID()) {
		return // a remote trace ID without a span is forwarded, so that the trace is not lost here
	}
	out := new(headers)
	if sc.IsValid() {
		p.b3.Inject(ctx, out)
		debug, ok := ctx.Value(debugged{}).(trace.TraceID)
		if ok && debug != sc.TraceID() {
			out.debugless()
			out.decide(sc.IsSampled())
		} else if !sc.IsRemote() {
			out.decide(sc.IsSampled()) // a span was started here, so the decision is not open
		}
		if id := sc.TraceID(); p.b3TraceID64 && binary.BigEndian.Uint64(id[8:]) != 0 {
			out.shorten()
		}
	}
	out[ours] = sc.TraceID().String()
	p.write(carrier, out)
}

// singleLength is the length of a b3 header with 128 bits and without a sampling decision.
const singleLength = 32 + 1 + 16

// decide adds a sampling decision where B3 has none.
func (h *headers) decide(sampled bool) {
	decision := "0"
	if sampled {
		decision = "1"
	}
	if len(h[b3Single]) == singleLength || len(h[b3Single]) == singleLength-16 {
		h[b3Single] += "-" + decision
	}
	if h[b3TraceID] != "" && h[b3Sampled] == "" && h[b3Flags] == "" {
		h[b3Sampled] = decision
	}
}

// debugless removes the debug flag.
func (h *headers) debugless() {
	h[b3Flags] = ""
	h[b3Single] = strings.TrimSuffix(h[b3Single], "-d")
}

// shorten leaves only the low 64 bits of the trace ID.
func (h *headers) shorten() {
	for _, i := range []header{b3Single, b3TraceID} {
		if h[i] != "" {
			h[i] = h[i][16:]
		}
	}
}
