package tracing

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// hop is a request to a service.
type hop struct {
	name    string
	headers []string

	propagator propagation.TextMapPropagator // nil: xtraceid.New()
	sampler    sdktrace.Sampler              // nil: the SDK's, ParentBased(AlwaysSample())
	// without them, the service does not use [xtraceid.Untrusted]
	verified, plausible func(trace.TraceID) bool
	edge                bool // the service is that of docs/security.md

	trace   string // "" means a new one
	parent  string // of the span; "" means none
	link    bool   // the span has a link to the caller's
	dropped bool   // not sampled
	random  bool   // the span has W3C's random flag
}

// whileMigrating is the code of docs/migrating-b3.md: see TestRecipes.
func whileMigrating(keyring *randflake.Keyring) func(trace.TraceID) bool {
	// With clients' new IDs.
	verifier := traceid.NewVerifier(keyring, traceid.WithPlausible(5*time.Minute))
	accept := func(id trace.TraceID) bool {
		old := [8]byte(id[:8]) == [8]byte{} // 64-bit
		return old || verifier.Verify(id) || verifier.Plausible(id)
	}
	return accept
}

// The traces and sampling decisions of the SDK for kinds of rows of the propagator's table. Its
// package tests all of them, and what the next service receives.
func TestHops(t *testing.T) {
	b3 := func(id, sampled string, more ...string) []string {
		return append([]string{"X-B3-TraceId", id, "X-B3-SpanId", spanS, "X-B3-Sampled", sampled},
			more...)
	}
	alone, low := []string{"x-trace-id", traceT}, "0000000000000000"+low64
	open := append([]string{"b3", lowT + "-" + spanS}, alone...)
	propagator := xtraceid.New(xtraceid.WithDeferredSampled())
	random := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{},
		propagation.Baggage{}, xtraceid.New(xtraceid.WithRandomFlag()))
	ours := func(id trace.TraceID) bool { return id.String() == traceT }
	always, never := sdktrace.ParentBased(sdktrace.AlwaysSample()),
		sdktrace.ParentBased(sdktrace.NeverSample())
	cases := []hop{
		{name: "nothing"},
		{name: "64-bit B3, not sampled", headers: b3(lowT, "0", alone...), trace: traceT,
			parent: spanS, dropped: true},
		{name: "x-trace-id alone", headers: alone, trace: traceT},
		// If the caller leaves the sampling decision open, ParentBased drops the trace, unless
		// WithDeferredSampled is set.
		{name: "open, treated as sampled", headers: open, propagator: propagator, sampler: never,
			trace: traceT, parent: spanS},
		{name: "open, ParentBased drops", headers: open, sampler: always, trace: traceT,
			dropped: true},
		// A trace that begins here has W3C's flag; an incoming one only if it arrived with it.
		{name: "random flag, a trace begins", propagator: random, random: true},
		{name: "random flag, x-trace-id", headers: alone, propagator: random, trace: traceT},
		{name: "random flag came", propagator: random, trace: traceT, parent: spanS, random: true,
			headers: []string{"traceparent", "00-" + traceT + "-" + spanS + "-03"}},
		// A trace that is verified continues; another does not, and the new one has a link to it.
		{name: "ours", headers: b3(traceT, "1"), verified: ours, trace: traceT, parent: spanS},
		{name: "another's", headers: b3(traceU, "0"), verified: ours, link: true},
		{name: "another's, debug", headers: []string{"b3", traceU + "-" + spanS + "-d"},
			verified: ours, sampler: never, dropped: true},
		{name: "plausible", headers: b3(traceT, "0"), plausible: ours, trace: traceT, link: true},
	}

	// How the edge treats each kind of client during a migration.
	keyring, err := randflake.ParseKeyring("dffd6021bb2bd5b0af676290809ec3a5")
	if err != nil {
		t.Fatal(err)
	}
	client := func(at time.Duration) string { return traceid.Max(time.Now().Add(at)).String() }
	now := client(0)
	cases = append(cases,
		hop{name: "an edge, plausible", edge: true, headers: b3(now, "0"), trace: now, link: true},
		hop{name: "an edge", edge: true, headers: b3(traceU, "1"), link: true})
	for _, c := range []hop{
		{name: "old app, 64-bit B3", headers: b3(low64, "1"), trace: low, parent: spanS},
		{name: "old app, 64-bit B3 and x-trace-id", headers: b3(low64, "1", "x-trace-id", now),
			trace: now, parent: spanS},
		{name: "new app", headers: []string{"x-trace-id", now}, trace: now},
		{name: "new app, an ID generated an hour ago",
			headers: []string{"x-trace-id", client(-time.Hour)}},
		{name: "random", headers: []string{"x-trace-id", "f" + now[1:]}},
	} {
		c.name, c.verified = "migrating, "+c.name, whileMigrating(keyring)
		cases = append(cases, c)
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

func (c hop) run(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	options := []sdktrace.TracerProviderOption{sdktrace.WithSpanProcessor(spans)}
	if c.sampler != nil {
		options = append(options, sdktrace.WithSampler(c.sampler))
	}
	if c.propagator == nil {
		c.propagator = xtraceid.New()
	}
	if c.verified != nil || c.plausible != nil {
		c.propagator = xtraceid.Untrusted(c.propagator,
			xtraceid.Trust{Context: c.verified, TraceID: c.plausible})
	}
	globals(t, options...)
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	handler := otelhttp.NewHandler(xtraceid.ResponseHandler(answer), "service",
		otelhttp.WithPropagators(c.propagator))
	if c.edge {
		handler = edge(nil, answer)
	}
	service := httptest.NewServer(handler)
	header, _ := child.Get(t, service.URL, c.headers...) // without an SDK, like a foreign client
	service.Close()

	id, err := trace.TraceIDFromHex(header.Get("x-trace-id"))
	if err != nil || len(header.Values("x-trace-id")) != 1 {
		t.Fatalf("the response has x-trace-id %q", header.Values("x-trace-id"))
	}
	isNew := !slices.Contains(c.headers, id.String()) &&
		traceid.NewVerifier(nil, traceid.WithPlausible(time.Minute)).Plausible(id)
	if isNew != (c.trace == "") || !isNew && id.String() != c.trace {
		t.Errorf("trace %s, want %q", id, c.trace)
	}
	ended := spans.Ended()
	if (len(ended) == 0) != c.dropped {
		t.Errorf("%d spans, dropped: %t", len(ended), c.dropped)
	}
	if len(ended) == 0 {
		return
	}
	span := ended[0]
	if got := span.Parent().SpanID().String(); strings.Trim(got, "0") != c.parent ||
		span.SpanContext().TraceID() != id {
		t.Errorf("the span is in trace %s under %q, want %s under %q",
			span.SpanContext().TraceID(), got, id, c.parent)
	}
	if flags := span.SpanContext().TraceFlags(); flags.IsRandom() != c.random {
		t.Errorf("the span has the flags %s", flags)
	}
	var links []string
	for _, l := range span.Links() {
		links = append(links, l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String())
	}
	if c.link && (len(links) != 2 || !slices.Equal(links, []string{c.headers[1], spanS})) ||
		!c.link && links != nil {
		t.Errorf("links %q", links)
	}
}
