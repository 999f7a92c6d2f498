package xtraceid

import (
	"context"
	"encoding/binary"
	"strings"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Names under which the b3 package reads and writes.
const (
	b3Header        = "b3"
	b3TraceIDHeader = "x-b3-traceid"
	b3SampledHeader = "x-b3-sampled"
)

type propagator struct {
	config
	b3 propagation.TextMapPropagator
}

// New returns a propagator for the trace ID header and B3. It is safe for concurrent use.
func New(opts ...Option) propagation.TextMapPropagator {
	return &propagator{newConfig(opts), b3.New(b3.WithInjectEncoding(b3.B3MultipleHeader))}
}

// Fields returns the keys that Inject may write, the trace ID header first.
func (p *propagator) Fields() []string {
	return append([]string{p.header}, p.b3.Fields()...)
}

// Inject writes the context's span into carrier, or nothing if there is none.
func (p *propagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	sc := trace.SpanContextFromContext(ctx)
	if sc.IsValid() {
		p.injectB3(ctx, sc, carrier)
	} else if !sc.IsRemote() || !sc.HasTraceID() {
		return // a remote trace ID without a span is forwarded, see the package doc
	}
	carrier.Set(p.header, sc.TraceID().String())
}

func (p *propagator) injectB3(ctx context.Context, sc trace.SpanContext, carrier propagation.TextMapCarrier) {
	if !sc.IsRemote() {
		// A span was started here, so the sampling decision is no longer deferred. Only the b3
		// package can clear that mark in the context, and it does so when it finds no B3.
		ctx = p.b3.Extract(ctx, propagation.MapCarrier(nil))
	}
	if id := sc.TraceID(); p.b3TraceID64 && binary.BigEndian.Uint64(id[8:]) != 0 {
		carrier = shortTraceID{carrier}
	}
	p.b3.Inject(ctx, carrier)
}

// Extract returns ctx with the remote span context that results from the carrier's headers (see
// the table in the package doc). If there is none, ctx keeps the span it had, unless that is
// remote and a verifier refuses it.
func (p *propagator) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	ctx = p.extract(ctx, carrier)
	if p.randomFlag {
		ctx = ContextWithRandomFlag(ctx)
	}
	return ctx
}

func (p *propagator) extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	id := p.traceID(carrier)
	current := trace.SpanContextFromContext(ctx)
	b3ctx, sc := p.extractB3(ctx, current, carrier)

	switch {
	case !id.IsValid() && !sc.IsValid():
		if p.verify != nil && (!current.IsRemote() || !current.HasTraceID() || !p.verify(current.TraceID())) {
			return withoutRemote(ctx)
		}
		return ctx // without the debug flag, which belongs to a trace
	case !id.IsValid():
	case sc.IsValid() && (sc.TraceID() == id || is64(sc.TraceID())):
		sc = sc.WithTraceID(id)
	default:
		// The debug flag and the deferred decision belong to the other trace too, or to none.
		b3ctx, sc = ctx, trace.SpanContext{}.WithTraceID(id)
	}

	if p.verify != nil && !p.verify(sc.TraceID()) {
		return withoutRemote(ctx)
	}
	if current.TraceID() == sc.TraceID() &&
		(!sc.HasSpanID() || current.IsRemote() && current.SpanID() == sc.SpanID()) {
		// Another propagator found the same span; W3C's has a tracestate and the random flag.
		return trace.ContextWithSpan(b3ctx, trace.SpanFromContext(ctx))
	}
	return trace.ContextWithRemoteSpanContext(b3ctx, sc)
}

// withoutRemote returns ctx without the span context of a propagator that is listed before this
// one. A span of this process stays.
func withoutRemote(ctx context.Context) context.Context {
	if !trace.SpanContextFromContext(ctx).IsRemote() {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, trace.SpanContext{})
}

// extractB3 returns the context that the b3 package returns and the span context that the package
// found in carrier, which is invalid if it found none.
func (p *propagator) extractB3(ctx context.Context, current trace.SpanContext, carrier propagation.TextMapCarrier) (context.Context, trace.SpanContext) {
	if current.IsValid() {
		// Otherwise the context's own span would look like one from B3.
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	if p.deferredSampled {
		carrier = sampledUnlessSaid{carrier}
	}
	ctx = p.b3.Extract(ctx, carrier)
	return ctx, trace.SpanContextFromContext(ctx)
}

// traceID returns the ID in the trace ID header, or the zero ID if there is none or it is
// malformed.
func (p *propagator) traceID(carrier propagation.TextMapCarrier) (id trace.TraceID) {
	text := carrier.Get(p.header)
	if values, ok := carrier.(propagation.ValuesGetter); ok {
		text = strings.Join(values.Values(p.header), ",")
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.Trim(part, " \t")
		if p.dashes {
			part = withoutDashes(part)
		}
		next, err := trace.TraceIDFromHex(strings.ToLower(part))
		if err != nil || id.IsValid() && next != id {
			return trace.TraceID{}
		}
		id = next
	}
	return id
}

// withoutDashes returns the digits of s if it has the form of a UUID, and s otherwise.
func withoutDashes(s string) string {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return s
	}
	return s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
}

// is64 reports whether id is a 64-bit trace ID, which the b3 package pads with zeros.
func is64(id trace.TraceID) bool {
	return binary.BigEndian.Uint64(id[:8]) == 0
}

// sampledUnlessSaid makes B3 without a sampling decision read as "sampled".
type sampledUnlessSaid struct{ propagation.TextMapCarrier }

func (c sampledUnlessSaid) Get(key string) string {
	v := c.TextMapCarrier.Get(key)
	switch key {
	case b3SampledHeader:
		if v == "" {
			return "1"
		}
	case b3Header:
		if len(v) == 16+1+16 || len(v) == 32+1+16 { // trace ID, hyphen, span ID
			return v + "-1"
		}
	}
	return v
}

// shortTraceID shortens the trace ID that the b3 package writes to its low 64 bits.
type shortTraceID struct{ propagation.TextMapCarrier }

func (c shortTraceID) Set(key, value string) {
	if key == b3TraceIDHeader {
		value = value[16:]
	}
	c.TextMapCarrier.Set(key, value)
}

// ContextWithRandomFlag returns a context in which the next root span gets the random flag of W3C
// Trace Context level 2: traceparent ends in 03 instead of 01, and samplers may rely on the low 56
// bits of the trace ID. Children and other services keep the flag. It is for roots that are not
// started by a request, such as those of jobs; for requests use [WithRandomFlag]. Use it only if
// this process's ID generator returns trace IDs whose low 56 bits are random, as traceflake's do.
//
//	ctx, span := tracer.Start(xtraceid.ContextWithRandomFlag(ctx), "nightly job")
//
// OpenTelemetry's SDK (v1.47) does not query its generator, but a root inherits the flags of a
// span context without IDs. [trace.WithNewRoot] drops them, and so does otelhttp if [Untrusted]
// returns true: such roots do not get the flag.
//
// A context that is already in a trace is returned unchanged: its trace ID may be from outside.
func ContextWithRandomFlag(ctx context.Context) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	if sc.HasTraceID() || sc.HasSpanID() {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, trace.SpanContext{}.WithTraceFlags(sc.TraceFlags()|trace.FlagsRandom))
}
