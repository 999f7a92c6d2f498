package xtraceid_test

import (
	"context"
	"net/http"
	"testing"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// Each propagator is compared with the b3 package alone, which does most of the work.
func propagators() map[string]propagation.TextMapPropagator {
	return map[string]propagation.TextMapPropagator{
		"b3":       b3.New(b3.WithInjectEncoding(b3.B3MultipleHeader)),
		"xtraceid": xtraceid.New(),
	}
}

func BenchmarkExtract(b *testing.B) {
	for _, c := range []struct {
		name string
		h    http.Header
	}{
		{"64-bit", headers(with(multi(lowT, spanS, "1"), "x-trace-id", traceT)...)},
		{"128-bit", headers(with(multi(traceT, spanS, "1"), "x-trace-id", traceT)...)},
		{"nothing", http.Header{}},
	} {
		for name, p := range propagators() {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				carrier := propagation.HeaderCarrier(c.h)
				b.ReportAllocs()
				for b.Loop() {
					p.Extract(context.Background(), carrier)
				}
			})
		}
	}
}

func BenchmarkInject(b *testing.B) {
	ctx := local(b, traceT, spanS, true)
	for name, p := range propagators() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Inject(ctx, propagation.HeaderCarrier{})
			}
		})
	}
}
