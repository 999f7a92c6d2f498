package xtraceid

import (
	"context"
	"encoding/binary"
	"strings"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/trace"
)

// decision is B3's sampling decision, as the header b3 has it.
type decision string

const (
	undecided  decision = "" // left to the receiver
	sampled    decision = "1"
	notSampled decision = "0"
	debug      decision = "d" // sampled, and services must not sample it away
)

// readB3 returns the span context and the decision of B3. Like other implementations, it reads the
// header b3 if that is valid, and otherwise the separate headers. The span context is invalid if
// neither has a span. A decision without a span is ignored: a caller could force it on a trace that
// begins here.
func readB3(in *headers) (trace.SpanContext, decision) {
	id, rest, _ := strings.Cut(in[b3Single], "-")
	span, rest, more := strings.Cut(rest, "-")
	d, parent, hasParent := strings.Cut(rest, "-")
	valid := !more // undecided
	switch decision(d) {
	case sampled, notSampled, debug:
		valid = !hasParent || isSpanID(parent)
	}
	if sc := b3SpanContext(id, span, decision(d)); valid && sc.IsValid() {
		return sc, decision(d)
	}

	var multiple decision
	switch strings.ToLower(in[b3Sampled]) {
	case "1", "true":
		multiple = sampled
	case "0", "false":
		multiple = notSampled
	case "":
	default:
		return trace.SpanContext{}, undecided
	}
	if in[b3Flags] == "1" {
		multiple = debug
	}
	if parent := in[b3ParentSpanID]; parent != "" && !isSpanID(parent) {
		return trace.SpanContext{}, undecided
	}
	return b3SpanContext(in[b3TraceID], in[b3SpanID], multiple), multiple
}

// b3SpanContext returns a remote span context, or an invalid one if an ID is malformed. A 64-bit
// trace ID is padded with zeros.
func b3SpanContext(id, span string, d decision) trace.SpanContext {
	c := trace.SpanContextConfig{Remote: true}
	var err error
	if len(id) == 16 {
		var low trace.SpanID
		low, err = trace.SpanIDFromHex(id)
		copy(c.TraceID[8:], low[:])
	} else {
		c.TraceID, err = trace.TraceIDFromHex(id)
	}
	if err != nil {
		return trace.SpanContext{}
	}
	if c.SpanID, err = trace.SpanIDFromHex(span); err != nil {
		return trace.SpanContext{}
	}
	if d == sampled || d == debug {
		c.TraceFlags = trace.FlagsSampled
	}
	return trace.NewSpanContext(c)
}

func isSpanID(text string) bool {
	_, err := trace.SpanIDFromHex(text)
	return err == nil
}

// b3State is what a span context cannot express of B3's decision: that it is missing, or the debug
// flag. It is a value of a context, and belongs to one trace: a trace that begins here because the
// caller's was refused does not have it.
type b3State struct {
	trace trace.TraceID
	decision
}

type b3Key struct{}

// withB3 returns ctx with the decision of a trace.
func withB3(ctx context.Context, id trace.TraceID, d decision) context.Context {
	if (d == sampled || d == notSampled) && ctx.Value(b3Key{}) == nil {
		return ctx // the span context has it
	}
	return context.WithValue(ctx, b3Key{}, b3State{id, d})
}

// decisionOf returns the decision in a span context's flags.
func decisionOf(sc trace.SpanContext) decision {
	if sc.IsSampled() {
		return sampled
	}
	return notSampled
}

// b3Decision returns the decision to be sent for the span context of ctx.
func b3Decision(ctx context.Context, sc trace.SpanContext) decision {
	state, ok := ctx.Value(b3Key{}).(b3State)
	switch own := ok && state.trace == sc.TraceID(); {
	case own && state.decision == debug:
		return debug
	case own && state.decision == undecided && sc.IsRemote() && !sc.IsSampled():
		return undecided // no span was started here
	}
	return decisionOf(sc)
}

// writeB3 sets the headers of B3 for a span.
func (p *propagator) writeB3(out *headers, sc trace.SpanContext, d decision) {
	id, span := out[ours], sc.SpanID().String()
	if low := sc.TraceID(); p.b3TraceID64 && binary.BigEndian.Uint64(low[8:]) != 0 {
		id = id[16:]
	}
	if p.encoding&b3.B3SingleHeader != 0 {
		out[b3Single] = strings.TrimSuffix(id+"-"+span+"-"+string(d), "-")
	}
	if p.encoding&b3.B3MultipleHeader == 0 {
		return
	}
	out[b3TraceID], out[b3SpanID] = id, span
	if d == debug {
		out[b3Flags] = "1" // it implies the decision
	} else {
		out[b3Sampled] = string(d)
	}
}
