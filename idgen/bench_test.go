package idgen

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// sdkDefault is a copy of the SDK's default generator, which is not exported.
type sdkDefault struct{}

func (sdkDefault) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
		if id.IsValid() {
			return id
		}
	}
}

func (sdkDefault) NewIDs(context.Context) (id trace.TraceID, span trace.SpanID) {
	for {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
		if id.IsValid() {
			break
		}
	}
	for {
		binary.NativeEndian.PutUint64(span[:], rand.Uint64())
		if span.IsValid() {
			return id, span
		}
	}
}

func benchmarks() map[string]sdktrace.IDGenerator {
	return map[string]sdktrace.IDGenerator{"default": sdkDefault{}, "traceflake": New()}
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
