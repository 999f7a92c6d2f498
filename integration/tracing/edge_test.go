package tracing

import (
	"encoding/binary"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

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

// A caller whose request has no ID, or malformed ones, cannot set B3's debug flag in the fleet.
func TestUntrustedDebug(t *testing.T) {
	for name, headers := range map[string][]string{
		"no ID":         {"X-B3-Flags", "1"},
		"single header": {"b3", "d"},
		"malformed":     {"X-B3-TraceId", "xyz", "X-B3-SpanId", spanS, "X-B3-Flags", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := xtraceid.New()
			var got http.Header
			orders := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }), serviceConfig{propagator: p})
			edge := startEdge(t, orders.URL, p, serviceConfig{propagator: p,
				options: []otelhttp.Option{otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(nil))}})
			get(t, edge.Client(), edge.URL, headers...)
			if got.Get("X-B3-TraceId") == "" || got.Get("X-B3-Flags") != "" {
				t.Errorf("orders receives %v", got)
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

// whileMigrating is the edge's rule in docs/migrating.md, word for word: see TestRecipes.
func whileMigrating(keyring *randflake.Keyring) func(trace.TraceID) bool {
	verifier := traceid.NewVerifier(keyring, traceid.WithPlausible(5*time.Minute)) // clients' new IDs
	accept := func(id trace.TraceID) bool {
		old := [8]byte(id[:8]) == [8]byte{} // 64-bit
		return old || verifier.Verify(id)
	}
	return accept
}

// How the edge treats each kind of client during a migration.
func TestEdgeWhileMigrating(t *testing.T) {
	keyring, err := randflake.ParseKeyring(strings.NewReader("dffd6021bb2bd5b0af676290809ec3a5"))
	if err != nil {
		t.Fatal(err)
	}
	// A client's ID: the usual clear half, and random bits.
	client := func(at time.Time) string {
		id := traceid.Min(at)
		random := uuid.New()
		copy(id[8:], random[:])
		return id.String()
	}
	now := time.Now()
	at := func(ms int64) string {
		var id trace.TraceID
		binary.BigEndian.PutUint64(id[:], uint64(ms)<<16)
		id[15] = 1
		return id.String()
	}
	for _, c := range []struct {
		name    string
		headers []string
		trace   string // "" is a new one
	}{
		{"old app, 64-bit B3", []string{"x-b3-traceid", low64, "x-b3-spanid", spanS, "x-b3-sampled", "1"}, noSpan + low64},
		{"old app, 64-bit B3 and x-trace-id", []string{"x-trace-id", client(now), "b3", low64 + "-" + spanS + "-1"}, "x-trace-id"},
		{"new app", []string{"x-trace-id", client(now)}, "x-trace-id"},
		{"new app, a slow request", []string{"x-trace-id", client(now.Add(-4 * time.Minute))}, "x-trace-id"},
		{"new app, an ID made an hour ago", []string{"x-trace-id", client(now.Add(-time.Hour))}, ""},
		{"UUID of version 7", []string{"x-trace-id", at(now.UnixMilli())}, ""},
		{"random", []string{"x-trace-id", "f" + client(now)[1:]}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			edge := startService(t, http.HandlerFunc(ok), serviceConfig{
				options: []otelhttp.Option{otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(whileMigrating(keyring)))},
			})
			resp := get(t, edge.Client(), edge.URL, c.headers...)
			got := resp.Header.Get("x-trace-id")
			if c.trace == "x-trace-id" {
				c.trace = c.headers[1]
			}
			switch {
			case c.trace != "" && got != c.trace:
				t.Errorf("trace %s, want %s", got, c.trace)
			case c.trace == "" && (got == c.headers[1] || len(got) != 32):
				t.Errorf("trace %q, want a new one", got)
			}
		})
	}
}
