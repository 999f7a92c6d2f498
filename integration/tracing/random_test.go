package tracing

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// W3C's random flag over real HTTP: a trace that begins in edge has it, in edge, in edge's
// requests and in orders; an incoming trace has it only if it arrived with it.
func TestRandomFlag(t *testing.T) {
	with := func(opts ...xtraceid.Option) propagation.TextMapPropagator {
		return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}, xtraceid.New(opts...))
	}
	refuse := xtraceid.WithVerifier(func(trace.TraceID) bool { return false })
	for _, c := range []struct {
		name    string
		edge    propagation.TextMapPropagator
		headers []string
		sampler sdktrace.Sampler
		flags   string // in the traceparent that orders receives
	}{
		{"a trace begins", with(xtraceid.WithRandomFlag()), nil, nil, "03"},
		{"it is not sampled", with(xtraceid.WithRandomFlag()), nil, sdktrace.NeverSample(), "02"},
		{"without the option", with(), nil, nil, "01"},
		{"x-trace-id from outside", with(xtraceid.WithRandomFlag()), []string{"x-trace-id", traceT}, nil, "01"},
		{"B3 from outside", with(xtraceid.WithRandomFlag()), []string{"b3", traceT + "-" + spanS + "-1"}, nil, "01"},
		{"traceparent without the flag", with(xtraceid.WithRandomFlag()), []string{"traceparent", "00-" + traceT + "-" + spanS + "-01"}, nil, "01"},
		{"traceparent with the flag", with(xtraceid.WithRandomFlag()), []string{"traceparent", "00-" + traceT + "-" + spanS + "-03"}, nil, "03"},
		{"a refused ID", xtraceid.New(xtraceid.WithRandomFlag(), refuse), []string{"x-trace-id", traceT}, nil, "03"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			orders := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r.Header.Get("traceparent")
			}), serviceConfig{propagator: propagation.TraceContext{}})
			var edge *service
			edge = startService(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				forward(t, edge.client(propagation.TraceContext{}), orders.URL)(w, r)
			}), serviceConfig{propagator: c.edge, sampler: c.sampler})
			get(t, edge.Client(), edge.URL, c.headers...)

			if !strings.HasSuffix(got, "-"+c.flags) {
				t.Errorf("orders got traceparent %q, want flags %s", got, c.flags)
			}
			edge.Close()
			orders.Close()
			random := c.flags == "02" || c.flags == "03"
			spans := append(edge.spans.Ended(), orders.spans.Ended()...)
			if want := map[bool]int{true: 0, false: 3}[c.sampler != nil]; len(spans) != want {
				t.Errorf("%d spans, want %d", len(spans), want)
			}
			for _, span := range spans {
				if got := span.SpanContext().TraceFlags().IsRandom(); got != random {
					t.Errorf("%s %s: random flag %v, want %v", span.SpanKind(), span.Name(), got, random)
				}
			}
		})
	}
}

// A root that is not started by a request.
func TestRandomFlagOfAJob(t *testing.T) {
	var got string
	orders := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("traceparent")
	}), serviceConfig{propagator: propagation.TraceContext{}})
	ctx, span := orders.provider.Tracer("job").Start(xtraceid.ContextWithRandomFlag(t.Context()), "nightly")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, orders.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := orders.client(propagation.TraceContext{}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	span.End()
	if !strings.HasPrefix(got, "00-"+span.SpanContext().TraceID().String()) || !strings.HasSuffix(got, "-03") {
		t.Errorf("traceparent %q, want flags 03", got)
	}
	if ctx := xtraceid.ContextWithRandomFlag(ctx); trace.SpanFromContext(ctx) != span {
		t.Error("the helper drops the span")
	}
}

// Server-Timing carries the server's span over each protocol, beside the handler's own value.
func TestServerTiming(t *testing.T) {
	h := xtraceid.ResponseHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Server-Timing", "db;dur=5")
	}), xtraceid.WithServerTiming())
	// startService adds its own ResponseHandler; this inner one adds to it.
	eachProtocol(t, h, serviceConfig{propagator: xtraceid.New(xtraceid.WithRandomFlag())}, func(t *testing.T, s *service) {
		resp := get(t, s.Client(), s.URL)
		sc := s.ended(t, 1)[0].SpanContext()
		want := []string{fmt.Sprintf(`traceparent;desc="00-%s-%s-03"`, sc.TraceID(), sc.SpanID()), "db;dur=5"}
		if got := resp.Header.Values("Server-Timing"); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("server-timing %q, want %q", got, want)
		}
		if got := strings.Join(resp.Header.Values(expose), ","); !strings.Contains(got, "Server-Timing") {
			t.Errorf("%s is %q", expose, got)
		}
	})
}

// A proxy's x-request-id in the form of a UUID becomes the trace ID if the options say so.
func TestRequestID(t *testing.T) {
	const dashed = "32d1f0a9-c800-0005-a1b2-c3d4e5f60718"
	want := strings.ReplaceAll(dashed, "-", "")
	for name, opts := range map[string][]xtraceid.Option{
		"asked for":  {xtraceid.WithHeader("x-request-id"), xtraceid.WithDashes()},
		"no dashes":  {xtraceid.WithHeader("x-request-id")},
		"by default": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var sent string
			orders := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				sent = r.Header.Get("x-request-id")
			}), serviceConfig{propagator: xtraceid.New(opts...)})
			var edge *service
			edge = startService(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				forward(t, edge.client(xtraceid.New(opts...)), orders.URL)(w, r)
			}), serviceConfig{propagator: xtraceid.New(opts...)})
			get(t, edge.Client(), edge.URL, "x-request-id", dashed)
			got := orders.ended(t, 1)[0].SpanContext().TraceID().String()
			if (got == want) != (name == "asked for") {
				t.Errorf("trace %s, with x-request-id %s: %s", got, want, name)
			}
			if name != "by default" && sent != got {
				t.Errorf("edge sent x-request-id %q, want %s", sent, got)
			}
		})
	}
}
