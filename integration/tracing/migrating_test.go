package tracing

import (
	"encoding/binary"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

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
