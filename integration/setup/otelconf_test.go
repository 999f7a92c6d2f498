package setup_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/otelconf"
	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/setup"
	"github.com/traceflake/traceflake/traceid"
)

// This tests what docs/faq.md says about OpenTelemetry's configuration file. If it fails after an
// update of otelconf, the page can be simplified.
func TestOtelconf(t *testing.T) {
	ids, err := setup.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := otelconf.ParseYAML(
		[]byte("file_format: \"1.0\"\ntracer_provider:\n  processors: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	sdk, err := otelconf.NewSDK(
		otelconf.WithOpenTelemetryConfiguration(*config),
		otelconf.WithTracerProviderOptions(sdktrace.WithIDGenerator(ids)),
	)
	if err != nil {
		t.Fatal(err)
	}
	_, span := sdk.TracerProvider().Tracer("test").Start(t.Context(), "work")
	if at := traceid.Time(span.SpanContext().TraceID()); time.Since(at).Abs() > time.Minute {
		t.Errorf("a trace ID of %s", at)
	}
	if err := errors.Join(sdk.Shutdown(t.Context()), ids.Shutdown(t.Context())); err != nil {
		t.Error(err)
	}

	autoprop.RegisterTextMapPropagator("x-trace-id", xtraceid.New())
	const ours, theirs = "18edbe84480000000000000000000003", "4bf92f3577b34da6a3ce929d0e0e4736"
	header := http.Header{
		"X-Trace-Id":  {ours},
		"Traceparent": {"00-" + theirs + "-00f067aa0ba902b7-01"},
	}
	inFile, err := otelconf.ParseYAML(
		[]byte("file_format: \"1.0\"\npropagator:\n  composite_list: " +
			"tracecontext,baggage,x-trace-id\n"))
	if err != nil {
		t.Fatal(err)
	}
	continued := make(map[string]bool) // traces, by 100 processes
	for range 100 {
		sdk, err := otelconf.NewSDK(otelconf.WithOpenTelemetryConfiguration(*inFile))
		if err != nil {
			t.Fatal(err)
		}
		ctx := sdk.Propagator().Extract(t.Context(), propagation.HeaderCarrier(header))
		continued[trace.SpanContextFromContext(ctx).TraceID().String()] = true
	}
	if want := map[string]bool{ours: true, theirs: true}; !maps.Equal(continued, want) {
		t.Errorf("processes continue %v, want %v: they have no order", continued, want)
	}

	t.Setenv("OTEL_PROPAGATORS", "tracecontext,baggage,x-trace-id")
	for range 100 {
		ctx := autoprop.NewTextMapPropagator().Extract(t.Context(),
			propagation.HeaderCarrier(header))
		if id := trace.SpanContextFromContext(ctx).TraceID().String(); id != ours {
			t.Fatalf("OTEL_PROPAGATORS does not keep the order: %s", id)
		}
	}

	// The mistakes that xtraceid's documentation warns of.
	t.Setenv("OTEL_PROPAGATORS", "baggage, x-trace-id")
	if p := autoprop.NewTextMapPropagator(); slices.Contains(p.Fields(), "x-trace-id") {
		t.Error("OTEL_PROPAGATORS: a name after a space is accepted: remove the warning")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic when a name is registered twice")
		}
	}()
	autoprop.RegisterTextMapPropagator("x-trace-id", xtraceid.New())
}
