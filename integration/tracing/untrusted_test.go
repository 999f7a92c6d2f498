package tracing

import (
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// A request with a foreign ID starts a new trace with a link.
func TestUntrusted(t *testing.T) {
	ours, err := trace.TraceIDFromHex(traceT)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(id trace.TraceID) bool { return id == ours }

	for _, c := range []struct {
		name    string
		headers []string
		trace   string // "" means a new one
		parent  string
		links   []string
	}{
		{"ours", []string{"x-trace-id", traceT, "b3", lowT + "-" + spanS + "-1"}, traceT, spanS, nil},
		{"ours, no parent", []string{"x-trace-id", traceT}, traceT, noSpan, nil},
		{"another's", []string{"x-trace-id", traceU, "b3", low64 + "-" + spanS + "-1"}, "", noSpan, []string{traceU, spanS}},
		{"another's, not sampled", []string{"x-trace-id", traceU, "b3", low64 + "-" + spanS + "-0"}, "", noSpan, []string{traceU, spanS}},
		{"another's, B3 alone", []string{"b3", traceU + "-" + spanS + "-1"}, "", noSpan, []string{traceU, spanS}},
		{"64-bit B3 alone", []string{"b3", low64 + "-" + spanS + "-1"}, "", noSpan, []string{"0000000000000000" + low64, spanS}},
		{"another's, no span to link to", []string{"x-trace-id", traceU}, "", noSpan, nil},
		{"no trace ID", nil, "", noSpan, nil},
		{"malformed", []string{"x-trace-id", "x"}, "", noSpan, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders := startService(t, http.HandlerFunc(ok), serviceConfig{})
			p := xtraceid.New()
			var edge *service
			edge = startService(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				forward(t, edge.client(p), orders.URL)(w, r)
			}), serviceConfig{propagator: p, options: []otelhttp.Option{otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(verify))}})

			resp := get(t, edge.Client(), edge.URL, c.headers...)
			span := edge.ended(t, 2)[1]
			got := span.SpanContext().TraceID().String()
			if c.trace == "" && (got == traceT || got == traceU || got[:16] == noSpan) || c.trace != "" && got != c.trace {
				t.Errorf("trace %s, want %q", got, c.trace)
			}
			if p := span.Parent().SpanID().String(); p != c.parent {
				t.Errorf("parent %s, want %s", p, c.parent)
			}
			checkLinks(t, span, c.links...)
			if h := resp.Header.Get("x-trace-id"); h != got {
				t.Errorf("the response has x-trace-id %q, want the new trace %s", h, got)
			}
			if next := orders.ended(t, 1)[0].SpanContext().TraceID().String(); next != got {
				t.Errorf("the next service has trace %s, want %s", next, got)
			}
		})
	}
}

// With the fleet's own generator and verifier, a trace of the fleet's client continues; those of
// another fleet and of random IDs do not.
func TestUntrustedFleet(t *testing.T) {
	codec, ids := fleet(t, "the fleet's secr")
	_, foreign := fleet(t, "another's secret")
	verifier := traceid.NewVerifier(randflake.NewKeyring(codec))

	for _, c := range []struct {
		name   string
		ids    sdktrace.IDGenerator
		goesOn bool
	}{
		{"ours", ids, true},
		{"another fleet's", foreign, false},
		{"of one process alone", idgen.New(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := xtraceid.New()
			client := startService(t, http.HandlerFunc(ok), serviceConfig{ids: c.ids})
			edge := startService(t, http.HandlerFunc(ok), serviceConfig{
				propagator: p, ids: ids,
				options: []otelhttp.Option{otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(verifier.Verify))},
			})
			get(t, client.client(p), edge.URL)
			caller := client.ended(t, 1)[0].SpanContext()
			span := edge.ended(t, 1)[0]
			if c.goesOn {
				checkLinks(t, span)
				if span.SpanContext().TraceID() != caller.TraceID() || span.Parent().SpanID() != caller.SpanID() {
					t.Errorf("trace %s, parent %s, want the caller's %s, %s", span.SpanContext().TraceID(),
						span.Parent().SpanID(), caller.TraceID(), caller.SpanID())
				}
				return
			}
			checkLinks(t, span, caller.TraceID().String(), caller.SpanID().String())
			if id := span.SpanContext().TraceID(); id == caller.TraceID() || !verifier.Verify(id) {
				t.Errorf("trace %s, want a new one of our generator", id)
			}
		})
	}
}

// fleet returns a codec and a generator with a lease of some minutes.
func fleet(t *testing.T, secret string) (*randflake.Codec, *idgen.Generator) {
	t.Helper()
	codec, err := randflake.NewCodec([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	source, err := randflake.NewGenerator(codec, randflake.Lease{
		Node: 8, Nodes: 8, Start: now.Add(-time.Second), End: now.Add(10 * time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	return codec, idgen.New(idgen.WithSource(source))
}
