package setup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

// A generator as the environment says; here it leases nodes from a file.
func ExampleFromEnv() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv(setup.StoreVar, "bolt:"+filepath.Join(dir, "leases.db")) // as the deployment does
	defer os.Unsetenv(setup.StoreVar)

	ids, err := setup.FromEnv(ctx)
	if err != nil {
		panic(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids))
	_, span := provider.Tracer("example").Start(ctx, "work")
	span.End()
	fmt.Println(time.Since(traceid.Time(span.SpanContext().TraceID())) < time.Minute, ids.Fallbacks())

	// Spans first, then the IDs: the lease is given back when no span needs it.
	if err := provider.Shutdown(ctx); err != nil {
		panic(err)
	}
	if err := ids.Shutdown(ctx); err != nil {
		panic(err)
	}
	// Output: true 0
}
