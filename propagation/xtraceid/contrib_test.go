package xtraceid_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// TestAgreesWithContrib compares random B3 headers without a trace ID header: both propagators
// extract one span, and inject the same headers for it, in each encoding. Malformed B3 is in the
// table of headers.
func TestAgreesWithContrib(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	for range 2000 {
		id, span := fmt.Sprintf("%016x", 1+r.Uint64()>>1), fmt.Sprintf("%016x", 1+r.Uint64()>>1)
		if r.IntN(2) == 0 {
			id = fmt.Sprintf("%016x", 1+r.Uint64()>>1) + id
		}
		h := http.Header{}
		if r.IntN(2) == 0 {
			h.Set("b3", id+"-"+span+pick("", "-0", "-1", "-d", "-1-"+span))
		} else {
			h.Set("X-B3-TraceId", id)
			h.Set("X-B3-SpanId", span)
			if s := pick("", "0", "1", "true", "false"); s != "" {
				h.Set("X-B3-Sampled", s)
			}
			if r.IntN(4) == 0 {
				h.Set("X-B3-Flags", "1")
			}
		}
		for _, encoding := range []b3.Encoding{b3.B3MultipleHeader, b3.B3SingleHeader,
			b3.B3MultipleHeader | b3.B3SingleHeader} {
			ours := xtraceid.New(xtraceid.WithB3Encoding(encoding))
			got := ours.Extract(t.Context(), propagation.HeaderCarrier(h))
			theirs := b3.New(b3.WithInjectEncoding(encoding))
			want := theirs.Extract(t.Context(), propagation.HeaderCarrier(h))
			if a, b := trace.SpanContextFromContext(got),
				trace.SpanContextFromContext(want); !a.Equal(b) {
				t.Fatalf("%v: extracted %v, contrib %v", h, a, b)
			}
			written, expected := http.Header{}, http.Header{}
			ours.Inject(got, propagation.HeaderCarrier(written))
			theirs.Inject(want, propagation.HeaderCarrier(expected))
			written.Del(xtraceid.DefaultHeader)
			if !maps.EqualFunc(written, expected, func(a, b []string) bool {
				return fmt.Sprint(a) == fmt.Sprint(b)
			}) {
				t.Fatalf("%v: injected %v, contrib %v", h, written, expected)
			}
		}
	}
}
