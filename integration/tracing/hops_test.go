package tracing

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// hop is a request to edge, which calls orders.
type hop struct {
	name    string
	headers []string

	// edge's configuration
	propagator propagation.TextMapPropagator // nil: xtraceid.New()
	sampler    sdktrace.Sampler              // nil: the SDK's, ParentBased(AlwaysSample())
	// without them, edge does not use [xtraceid.Untrusted]
	verified, plausible func(trace.TraceID) bool

	trace   string            // "" means a new one
	parent  string            // of edge's span; "" means none
	link    bool              // edge's span has a link to the caller's
	dropped bool              // not sampled
	sends   map[string]string // headers of orders: = and the value, its end, or "" for none
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

// The traces and sampling decisions of the SDK for the rows of the propagator's table, which its
// package tests one by one, and the headers that the next service receives.
func TestHops(t *testing.T) {
	b3 := func(id, sampled string, more ...string) []string {
		h := []string{"X-B3-TraceId", id, "X-B3-SpanId", spanS}
		if sampled != "" {
			h = append(h, "X-B3-Sampled", sampled)
		}
		return append(h, more...)
	}
	alone, low := []string{"x-trace-id", traceT}, "0000000000000000"+low64
	open := b3(lowT, "", alone...)
	propagator := xtraceid.New(xtraceid.WithDeferredSampled())
	cases := []hop{
		{name: "nothing"},
		{name: "64-bit B3, not sampled", headers: b3(lowT, "0", alone...), trace: traceT,
			parent: spanS, dropped: true},
		{name: "other B3, not sampled", headers: b3(traceU, "0", alone...), trace: traceT},
		{name: "x-trace-id alone", headers: alone, trace: traceT},
		// If the caller leaves the sampling decision open, ParentBased drops the trace, unless
		// WithDeferredSampled is set: then the services behind follow.
		{name: "open, treated as sampled", headers: open, propagator: propagator,
			sampler: sdktrace.ParentBased(sdktrace.NeverSample()), trace: traceT, parent: spanS},
		{name: "open, ParentBased drops", headers: open,
			sampler: sdktrace.ParentBased(sdktrace.AlwaysSample()), trace: traceT, dropped: true},
		{name: "B3 shortened", headers: b3(traceT, "1"),
			propagator: xtraceid.New(xtraceid.WithB3TraceID64()), trace: traceT, parent: spanS,
			sends: map[string]string{"X-B3-TraceId": "=" + lowT, "X-Trace-Id": "=" + traceT}},
	}

	// W3C's random flag: a trace that begins in edge has it; an incoming trace has it only if it
	// arrived with it.
	random := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{},
		propagation.Baggage{},
		xtraceid.New(xtraceid.WithRandomFlag()))
	parent := "00-" + traceT + "-" + spanS
	flags := func(f string) map[string]string { return map[string]string{"Traceparent": "-" + f} }
	cases = append(cases,
		hop{name: "random flag, a trace begins", propagator: random, sends: flags("03")},
		hop{name: "random flag, x-trace-id", headers: alone, propagator: random, trace: traceT,
			sends: flags("01")},
		hop{name: "random flag came", headers: []string{"traceparent", parent + "-03"},
			propagator: random, trace: traceT, parent: spanS, sends: flags("03")},
	)

	// A trace that is verified continues; another does not, and the new one has a link to it. A
	// caller whose request has no ID, or malformed ones, cannot set B3's debug flag in the fleet.
	ours := func(id trace.TraceID) bool { return id.String() == traceT }
	debug := map[string]string{"X-B3-Flags": "", "X-B3-Sampled": "=1"}
	off := map[string]string{"X-B3-Flags": "", "X-B3-Sampled": "=0"}
	never := sdktrace.ParentBased(sdktrace.NeverSample())
	cases = append(cases,
		hop{name: "ours", headers: b3(traceT, "1"), verified: ours, trace: traceT, parent: spanS},
		hop{name: "another's", headers: b3(traceU, "0"), verified: ours, link: true},
		hop{name: "another's, debug", headers: b3(traceU, "", "X-B3-Flags", "1"), verified: ours,
			link: true, sends: debug},
		hop{name: "another's, debug in the other header", headers: b3(traceU, "", "b3", "d"),
			verified: ours, sampler: never, dropped: true, sends: off},
		hop{name: "plausible", headers: b3(traceT, "0"), plausible: ours, trace: traceT, link: true,
			sends: debug},
		hop{name: "plausible, debug", headers: b3(traceT, "", "X-B3-Flags", "1"), plausible: ours,
			sampler: never, trace: traceT, dropped: true, sends: off},
		hop{name: "debug without an ID", headers: []string{"X-B3-Flags", "1"}, verified: ours,
			sends: debug},
	)

	// How the edge treats each kind of client during a migration.
	keyring, err := randflake.ParseKeyring("dffd6021bb2bd5b0af676290809ec3a5")
	if err != nil {
		t.Fatal(err)
	}
	client := func(at time.Duration) string { return traceid.Max(time.Now().Add(at)).String() }
	now := client(0)
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
	var received http.Header
	all := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xtraceid.New())
	orders := startService(t, all, nil, nil, nil,
		func(_ http.ResponseWriter, r *http.Request) { received = r.Header.Clone() })
	if c.propagator == nil {
		c.propagator = xtraceid.New()
	}
	var edge *service
	edge = startService(t, c.propagator, c.sampler, c.verified, c.plausible,
		func(_ http.ResponseWriter, r *http.Request) {
			request, err := http.NewRequestWithContext(r.Context(), "GET", orders.URL, http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			transport := otelhttp.NewTransport(http.DefaultTransport, edge.telemetry...)
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Error(err)
				return
			}
			response.Body.Close()
		})
	header, _ := child.Get(t, edge.URL, c.headers...) // without an SDK, like a foreign client
	edge.Close()
	orders.Close()

	id, err := trace.TraceIDFromHex(header.Get("x-trace-id"))
	if err != nil || len(header.Values("x-trace-id")) != 1 {
		t.Fatalf("the response has x-trace-id %q", header.Values("x-trace-id"))
	}
	isNew := !slices.Contains(c.headers, id.String()) &&
		traceid.NewVerifier(nil, traceid.WithPlausible(time.Minute)).Plausible(id)
	if isNew != (c.trace == "") || !isNew && id.String() != c.trace {
		t.Errorf("trace %s, want %q", id, c.trace)
	}
	for name, end := range c.sends {
		if got := received.Get(name); !strings.HasSuffix("="+got, end) || end == "" && got != "" {
			t.Errorf("orders receives %s: %q, want …%s", name, got, end)
		}
	}
	// orders' server, edge's client and server
	spans := append(orders.spans.Ended(), edge.spans.Ended()...)
	if c.dropped {
		if len(spans) > 0 {
			t.Errorf("%d spans, want none", len(spans))
		}
		return
	}
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3", len(spans))
	}
	spanID := func(i int) string { return spans[i].SpanContext().SpanID().String() }
	for i, parent := range []string{spanID(1), spanID(2), c.parent} {
		span := spans[i]
		got := strings.Trim(span.Parent().SpanID().String(), "0")
		if got != strings.Trim(parent, "0") || span.SpanContext().TraceID() != id {
			t.Errorf("%s %s is in trace %s under %q, want %s under %q", span.SpanKind(),
				span.Name(), span.SpanContext().TraceID(), got, id, parent)
		}
		if f, ok := c.sends["Traceparent"]; ok &&
			span.SpanContext().TraceFlags().IsRandom() != (f == "-03") {
			t.Errorf("%s %s has the flags %s", span.SpanKind(), span.Name(),
				span.SpanContext().TraceFlags())
		}
	}
	var links []string
	for _, l := range spans[2].Links() {
		links = append(links, l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String())
	}
	if c.link && (len(links) != 2 || !slices.Equal(links, []string{c.headers[1], spanS})) ||
		!c.link && links != nil {
		t.Errorf("links %q", links)
	}
}
