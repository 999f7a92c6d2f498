package xtraceid

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Extract returns ctx with the remote span context of the carrier's headers (docs/headers.md has
// the table). If they contain none, ctx keeps its span, unless that is remote and a verifier
// refuses it.
func (p *propagator) Extract(
	ctx context.Context, carrier propagation.TextMapCarrier,
) context.Context {
	in := p.read(carrier)
	if values := p.values(carrier); len(values) > 1 {
		in[ours] = strings.Join(values, ",")
	}
	ctx = p.extract(ctx, in)
	if p.randomFlag {
		ctx = ContextWithRandomFlag(ctx)
	}
	return ctx
}

func (p *propagator) extract(ctx context.Context, in headers) context.Context {
	id := p.parse(in[ours])
	current := trace.SpanContextFromContext(ctx)
	b3ctx, parent := p.extractB3(ctx, current, in)

	sc := parent
	switch {
	case !id.IsValid() && !sc.IsValid():
		if p.verify != nil &&
			(!current.IsRemote() || !current.HasTraceID() || !p.verify(current.TraceID())) {
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
	if sc.HasSpanID() && in.debug() {
		b3ctx = context.WithValue(b3ctx, debugged{}, sc.TraceID())
	}
	switch {
	case current.TraceID() == sc.TraceID() &&
		(!sc.HasSpanID() || current.IsRemote() && current.SpanID() == sc.SpanID()):
		// Another propagator found the same span; W3C's has a tracestate and the random flag.
		return trace.ContextWithSpan(b3ctx, trace.SpanFromContext(ctx))
	case sc.Equal(parent):
		return b3ctx // the b3 package put it there
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
// found, which is invalid if it found none.
func (p *propagator) extractB3(
	ctx context.Context, current trace.SpanContext, in headers,
) (context.Context, trace.SpanContext) {
	if in.withoutB3() {
		return ctx, trace.SpanContext{}
	}
	if current.IsValid() {
		// Otherwise the context's own span would look like one from B3.
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	carrier := in
	if p.deferredSampled {
		carrier.decide(true)
	}
	ctx = p.b3.Extract(ctx, &carrier)
	return ctx, trace.SpanContextFromContext(ctx)
}

// debug reports whether B3 has the debug flag.
func (h *headers) debug() bool {
	single := h[b3Single]
	return h[b3Flags] == "1" || strings.HasSuffix(single, "-d") || strings.Contains(single, "-d-")
}

// parse returns the ID in the value of the trace ID header, or the zero ID if it is missing or
// malformed.
func (p *propagator) parse(text string) (id trace.TraceID) {
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
