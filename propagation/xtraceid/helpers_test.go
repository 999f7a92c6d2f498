package xtraceid_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	traceT = "32d1f0a9c8000005a1b2c3d4e5f60718"
	traceU = "32d1f0a9c8000006ffeeddccbbaa9988" // another trace
	spanS  = "53995c3f42cd8ad8"
	spanP  = "e457b5a2e4d86bd1"
)

// fields are headers that Inject writes.
type fields = propagation.MapCarrier

// unhex decodes s into id. An empty s leaves it zero.
func unhex(tb testing.TB, id []byte, s string) {
	tb.Helper()
	if n, err := hex.Decode(id, []byte(s)); err != nil || n != 0 && n != len(id) {
		tb.Fatal(s, err)
	}
}

func traceID(tb testing.TB, s string) (id trace.TraceID) { unhex(tb, id[:], s); return id }

func spanID(tb testing.TB, s string) (id trace.SpanID) { unhex(tb, id[:], s); return id }

// spanContext returns a span context that is remote if it has a trace ID.
func spanContext(tb testing.TB, traceHex, spanHex string, sampled bool) trace.SpanContext {
	tb.Helper()
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID:    traceID(tb, traceHex),
		SpanID:     spanID(tb, spanHex),
		TraceFlags: trace.TraceFlags(0).WithSampled(sampled),
		Remote:     traceHex != "",
	})
}

// local returns a context with a span of this process.
func local(tb testing.TB, traceHex, spanHex string, sampled bool) context.Context {
	sc := spanContext(tb, traceHex, spanHex, sampled).WithRemote(false)
	return trace.ContextWithSpanContext(context.Background(), sc)
}

// headers returns an http.Header of pairs; a name may occur more than once.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// multi returns B3 in separate headers.
func multi(traceHex, spanHex, sampled string) []string {
	h := []string{"X-B3-TraceId", traceHex, "X-B3-SpanId", spanHex, "X-B3-ParentSpanId", spanP}
	if sampled != "" {
		h = append(h, "X-B3-Sampled", sampled)
	}
	return h
}

func show(sc trace.SpanContext) string {
	s := sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
	if sc.IsRemote() {
		s += " remote"
	}
	return s
}
