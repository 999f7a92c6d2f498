package tracing

import (
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// With the fleet's own generator and verifier, a trace of the fleet's client continues; those of
// another fleet and of random IDs do not, and the new one has a link to them.
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
			resp := get(t, client.client(p), edge.URL)
			caller := client.ended(t, 1)[0].SpanContext()
			span := edge.ended(t, 1)[0]
			if got := resp.Header.Get("x-trace-id"); got != span.SpanContext().TraceID().String() {
				t.Errorf("the response has x-trace-id %q, the span %s", got, span.SpanContext().TraceID())
			}
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
