package xtraceid

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Extract returns ctx with the remote span context of the carrier's headers (docs/headers.md has
// the table). If they contain none, it returns ctx.
func (p *propagator) Extract(
	ctx context.Context, carrier propagation.TextMapCarrier,
) context.Context {
	in := p.read(carrier)
	ctx = p.extract(ctx, &in)
	if p.randomFlag {
		ctx = ContextWithRandomFlag(ctx)
	}
	return ctx
}

func (p *propagator) extract(ctx context.Context, in *headers) context.Context {
	here := trace.SpanContextFromContext(ctx)
	var found trace.SpanContext // by a propagator that is listed before, such as W3C's
	if here.IsRemote() && here.IsValid() {
		found = here
	}
	sc, d := readB3(in)
	if id := p.parse(in[ours]); id.IsValid() {
		sc, found = join(sc, id), join(found, id)
		switch {
		case sc.IsValid():
		case found.IsValid():
			sc, d = found, decisionOf(found)
		case here.TraceID() == id:
			return ctx // a span of this process, which stays the parent
		default:
			sc = trace.SpanContext{}.WithTraceID(id)
			return trace.ContextWithRemoteSpanContext(ctx, sc)
		}
	}
	if !sc.IsValid() {
		return ctx
	}

	if found.TraceID() == sc.TraceID() {
		if found.SpanID() == sc.SpanID() {
			sc = found // W3C's has a tracestate and the random flag
		} else if d == undecided {
			sc = sc.WithTraceFlags(found.TraceFlags())
		}
		if d == undecided {
			d = decisionOf(sc)
		}
	}
	switch {
	case d == undecided && p.deferredSampled:
		d, sc = sampled, sc.WithTraceFlags(sc.TraceFlags().WithSampled(true))
	case d == undecided:
		if of, ok := ctx.Value(diagnosisKey{}).(*diagnosis); ok && !of.ended {
			of.lost = p
		} else {
			p.reportLost()
		}
	}
	ctx = withB3(ctx, sc.TraceID(), d)
	if sc.Equal(here) {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, sc)
}

// diagnosis is a value of the context in which [Untrusted] extracts: whether a trace is lost is
// known only when its caller is accepted.
type diagnosis struct {
	lost  *propagator // it would report errLost
	ended bool        // the extraction has ended; the context may outlive it
}

type diagnosisKey struct{}

func (p *propagator) reportLost() {
	if p.lost.CompareAndSwap(false, true) {
		p.reports.Add(errLost)
	}
}

// errLost is reported once by each propagator.
var errLost = errors.New("xtraceid: a request has B3 without a sampling decision, which samplers " +
	"such as ParentBased read as \"do not sample\": its trace is not recorded, although " +
	"responses have its ID; use WithDeferredSampled, or let clients send X-B3-Sampled")

// join returns a span context of the trace that x-trace-id names: with the same ID, or with a
// 64-bit one, which an old client generates for the same trace. Of another trace it returns an
// invalid one.
func join(sc trace.SpanContext, id trace.TraceID) trace.SpanContext {
	if sc.IsValid() && (sc.TraceID() == id || is64(sc.TraceID())) {
		return sc.WithTraceID(id)
	}
	return trace.SpanContext{}
}

// is64 reports whether id is a padded 64-bit trace ID.
func is64(id trace.TraceID) bool {
	return binary.BigEndian.Uint64(id[:8]) == 0
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
