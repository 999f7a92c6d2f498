package traceid_test

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

func ExampleTime() {
	id, err := trace.TraceIDFromHex("16c6e867fa0000050123456789abcdef")
	if err != nil {
		panic(err)
	}
	fmt.Println(traceid.Time(id).Format(time.RFC3339Nano), traceid.Inspect(nil, id).Sequence)
	// Output: 2026-03-14T12:00:00.5Z 5
}

// The traces of five minutes are a range of a sorted column.
func ExampleMin() {
	from := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	fmt.Printf("SELECT * FROM requests WHERE trace_id BETWEEN '%s'\n\tAND '%s'\n",
		traceid.Min(from), traceid.Max(from.Add(5*time.Minute)))
	// Output:
	// SELECT * FROM requests WHERE trace_id BETWEEN '16c6e867000000000000000000000000'
	// 	AND '16c6eab0f07fffffffffffffffffffff'
}

// With the fleet's secrets, an ID shows which node generated it.
func ExampleInspect() {
	keyring, err := randflake.ParseKeyring("dffd6021bb2bd5b0af676290809ec3a5")
	if err != nil {
		panic(err)
	}
	// In a service the ID is from a span, and the secret from fleet.LoadKeyring.
	noon := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	low, err := keyring.Codec().Encode(randflake.Parts{Time: noon, Node: 4711, Sequence: 3})
	if err != nil {
		panic(err)
	}
	id, err := traceid.New(noon, 5, low)
	if err != nil {
		panic(err)
	}

	info := traceid.Inspect(keyring, id)
	fmt.Println(info.Agree, info.Time.Format(time.RFC3339), info.Parts.Node, info.Parts.Sequence)
	// Output: true 2026-03-14T12:00:00Z 4711 3
}

// At the edge, a request with a trace ID that this fleet did not generate starts a new trace with a
// link to the caller's:
//
//	otelhttp.NewHandler(xtraceid.ResponseHandler(mux), "edge",
//		otelhttp.WithPropagators(untrusted))
func ExampleVerifier() {
	keyring, err := randflake.ParseKeyring("dffd6021bb2bd5b0af676290809ec3a5")
	if err != nil {
		panic(err)
	}
	verifier := traceid.NewVerifier(keyring, traceid.WithMaxAge(time.Hour))
	untrusted := xtraceid.Untrusted(xtraceid.New(), xtraceid.Trust{Context: verifier.Verify})

	headers := propagation.MapCarrier{"x-trace-id": "4bf92f3577b34da6a3ce929d0e0e4736"}
	ctx := untrusted.Extract(context.Background(), headers)
	fmt.Println(trace.SpanContextFromContext(ctx).HasTraceID())
	// Output: false
}
