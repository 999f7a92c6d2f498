package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/lease/fleet"
	"github.com/traceflake/traceflake/traceid"
)

// A generator configured by the environment; here it leases nodes from a file.
func ExampleFromEnv() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("TRACEFLAKE_STORE", "file:"+filepath.Join(dir, "leases")) // as the deployment does
	defer os.Unsetenv("TRACEFLAKE_STORE")

	ids, err := fleet.FromEnv(ctx)
	if err != nil {
		panic(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids))
	_, span := provider.Tracer("example").Start(ctx, "work")
	span.End()
	id := span.SpanContext().TraceID()
	fmt.Println(time.Since(traceid.Time(id)) < time.Minute, ids.Fallbacks())
	// A verifier distinguishes the fleet's own IDs from others:
	//	otelhttp.WithPropagators(xtraceid.Untrusted(propagator, xtraceid.Trust{
	//		Context: verifier.Verify}))
	verifier := ids.Verifier()
	fmt.Println(verifier.Verify(id), verifier.Verify(trace.TraceID{0x4b, 0xf9, 0x2f, 0x35, 15: 1}))

	// Spans first, then the IDs.
	if err := provider.Shutdown(ctx); err != nil {
		panic(err)
	}
	if err := ids.Shutdown(ctx); err != nil {
		panic(err)
	}
	// Output:
	// true 0
	// true false
}
