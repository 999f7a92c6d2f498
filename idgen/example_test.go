package idgen_test

import (
	"context"
	"fmt"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Without options trace IDs sort by time, and nothing is configured.
func Example() {
	ctx := context.Background()
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()))
	defer func() { _ = provider.Shutdown(ctx) }()

	_, first := provider.Tracer("example").Start(ctx, "first")
	_, second := provider.Tracer("example").Start(ctx, "second")
	first.End()
	second.End()
	a, b := first.SpanContext().TraceID(), second.SpanContext().TraceID()
	fmt.Println(a.String() < b.String(), time.Since(traceid.Time(a)) < time.Minute)
	// Output: true true
}

// Low halves from a lease under a secret of the fleet: unique in the fleet, and decoded by holders
// of the secret. A lease.Keeper is such a source, too, and renews its leases; package fleet starts
// one as the environment configures it.
func ExampleWithSource() {
	codec, err := randflake.NewCodec([]byte("16 secret bytes!"))
	if err != nil {
		panic(err)
	}
	start := time.Now().Add(-time.Second)
	lease := randflake.Lease{Node: 64, Nodes: 8, Start: start, End: start.Add(time.Hour)}
	source, err := randflake.NewGenerator(codec, lease)
	if err != nil {
		panic(err)
	}
	id, _ := idgen.New(idgen.WithSource(source)).NewIDs(context.Background())

	info := traceid.Inspect(randflake.NewKeyring(codec), id)
	fmt.Println(info.Agree, info.Parts.Node/8)
	// Output: true 8
}

// A record that predates tracing gets an ID with its own time.
func ExampleGenerator_NewTraceIDAt() {
	id, err := idgen.New().NewTraceIDAt(time.Date(2021, 5, 6, 7, 8, 9, 0, time.UTC))
	if err != nil {
		panic(err)
	}
	fmt.Println(id.String()[:10], traceid.Time(id).Format(time.RFC3339))
	// Output: 04f10d37d4 2021-05-06T07:08:09Z
}
