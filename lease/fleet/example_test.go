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
	fmt.Println(time.Since(traceid.Time(span.SpanContext().TraceID())) < time.Minute,
		ids.Fallbacks())

	// Spans first, then the IDs: the lease is returned when no span needs it.
	if err := provider.Shutdown(ctx); err != nil {
		panic(err)
	}
	if err := ids.Shutdown(ctx); err != nil {
		panic(err)
	}
	// Output: true 0
}

// With a secret, the fleet's or that of a directory, the fleet's own IDs are distinguished from
// others.
func ExampleIDs_Verifier() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ids, err := fleet.Config{Store: "file:" + filepath.Join(dir, "leases")}.Open(ctx)
	if err != nil {
		panic(err)
	}
	defer func() { _ = ids.Shutdown(ctx) }()
	own, _ := ids.NewIDs(ctx)
	foreign := trace.TraceID{0x4b, 0xf9, 0x2f, 0x35, 15: 0x36}
	// for otelhttp.WithPropagators(xtraceid.Untrusted(propagator,
	//	xtraceid.Trust{Context: verifier.Verify}))
	verifier := ids.Verifier()
	fmt.Println(verifier.Verify(own), verifier.Verify(foreign))
	// Output: true false
}
