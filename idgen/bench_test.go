package idgen_test

import (
	"context"
	"math/rand/v2"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
)

type sdkDefault struct{}

// The SDK keeps its default generator to itself; these are its two methods.
func (sdkDefault) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for {
		put(id[:], rand.Uint64())
		if id.IsValid() {
			return id
		}
	}
}

func (sdkDefault) NewIDs(context.Context) (id trace.TraceID, span trace.SpanID) {
	for {
		put(id[:8], rand.Uint64())
		put(id[8:], rand.Uint64())
		if id.IsValid() {
			break
		}
	}
	for {
		put(span[:], rand.Uint64())
		if span.IsValid() {
			return id, span
		}
	}
}

func put(b []byte, n uint64) {
	for i := range 8 {
		b[i] = byte(n >> (8 * i))
	}
}

func benchmarks() map[string]sdktrace.IDGenerator {
	return map[string]sdktrace.IDGenerator{"default": sdkDefault{}, "traceflake": idgen.New()}
}

func BenchmarkNewIDs(b *testing.B) {
	for name, g := range benchmarks() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					g.NewIDs(context.Background())
				}
			})
		})
	}
}

func BenchmarkNewSpanID(b *testing.B) {
	for name, g := range benchmarks() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					g.NewSpanID(context.Background(), trace.TraceID{})
				}
			})
		})
	}
}
