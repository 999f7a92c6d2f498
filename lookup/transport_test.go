package lookup

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// answer is a server's response.
type answer struct {
	status   int
	body     string
	location string
	chunked  bool
}

var (
	missing = answer{status: http.StatusNotFound, body: "trace not found"}
	empty   = answer{status: 200, body: `{"trace":{},"metrics":{}}`}
	found   = answer{status: 200, body: strings.Repeat("x", emptyLen+1)}
	failed  = answer{status: http.StatusInternalServerError, body: "boom"}
)

func (a answer) write(w http.ResponseWriter) {
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	w.WriteHeader(a.status)
	if a.chunked {
		w.(http.Flusher).Flush()
	}
	_, _ = io.WriteString(w, a.body)
}

// server answers with bounded if the request has a start. It records the queries, and counts the
// connections.
func server(t *testing.T, bounded, plain answer) (address string, queries *[]string, opened *atomic.Int32) {
	queries, opened = new([]string), new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*queries = append(*queries, r.URL.RawQuery)
		if q := r.URL.Query(); q.Has("start") || q.Has("start_time") {
			bounded.write(w)
			return
		}
		plain.write(w)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, queries, opened
}

func client(t *testing.T, b Backend, opts ...Option) *http.Client {
	t.Helper()
	verify := WithVerifier(func(id trace.TraceID) bool { return traceid.Low(id) == low })
	tr, err := New(b, append([]Option{verify}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: tr}
}

// low is the low half of IDs that the verifier of client accepts.
const low = 0x86cdcca4ab608495

func newID(t *testing.T, at time.Time) trace.TraceID {
	t.Helper()
	id, err := traceid.New(at, 7, low)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// When the server found nothing with the bound, or may have, the answer is that of the request as
// it came. The connection of the other response is used again.
func TestRepeats(t *testing.T) {
	for name, tt := range map[string]struct {
		bounded answer
		repeats bool
	}{
		"404": {missing, true}, "400": {answer{status: 400, body: strings.Repeat("x", 5000)}, true},
		"empty": {empty, true}, "empty in chunks": {answer{status: 200, body: empty.body, chunked: true}, true},
		"no body": {answer{status: 200}, true}, "the longest empty": {answer{status: 200, body: found.body[1:]}, true},
		"found": {found, false}, "found in chunks": {answer{status: 200, body: found.body, chunked: true}, false},
		"500": {failed, false}, "429": {answer{status: 429}, false}, "401": {answer{status: 401}, false},
		// Its Location may have the added time, which would then look like the client's own.
		"redirect": {answer{status: 307, location: "/api/v2/traces/1?start=1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			plain := answer{status: 200, body: `{"batches":["the whole trace"]}`}
			address, queries, opened := server(t, tt.bounded, plain)
			resp, err := client(t, Tempo).Get(address + "/api/v2/traces/" + newID(t, time.Now()).String())
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			want, requests := tt.bounded, 1
			if tt.repeats {
				want, requests = plain, 2
			}
			if err != nil || string(body) != want.body || resp.StatusCode != want.status {
				t.Errorf("got %d %.40q, %v; want %d %.40q", resp.StatusCode, body, err, want.status, want.body)
			}
			if len(*queries) != requests || resp.Request.URL.RawQuery != "" || opened.Load() != 1 {
				t.Errorf("requests %q on %d connections, answer to %q", *queries, opened.Load(), resp.Request.URL.RawQuery)
			}
		})
	}
}

// The metric shows what was done with a lookup and how it ended.
func TestMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	refused := errors.New("connection refused")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ours, foreign := newID(t, time.Now()).String(), "4bf92f3577b34da6a3ce929d0e0e4736"
	meters := WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	for _, tt := range []struct {
		path           string
		bounded, plain answer
		err            error
	}{
		{ours, found, found, nil}, {ours, missing, found, nil}, {ours, missing, missing, nil},
		{foreign, found, found, nil}, {foreign, found, missing, nil}, {ours + "?start=1", found, found, nil},
		{ours, answer{status: 429}, found, nil}, {ours, missing, failed, nil}, {foreign, found, failed, nil},
		{ours, found, found, refused}, {ours, found, found, context.Canceled},
	} {
		address, _, _ := server(t, tt.bounded, tt.plain)
		next := roundTrip(func(r *http.Request) (*http.Response, error) {
			if errors.Is(tt.err, context.Canceled) {
				cancel()
			}
			if tt.err != nil {
				return nil, tt.err
			}
			return http.DefaultTransport.RoundTrip(r)
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/traces/"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client(t, Tempo, meters, WithTransport(next)).Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]uint64)
	for _, m := range all.ScopeMetrics[0].Metrics {
		for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
			key := m.Name + " in " + m.Unit
			for _, name := range []string{"traceflake.backend", "outcome", "http.response.status_code"} {
				value, _ := p.Attributes.Value(attribute.Key(name))
				key += " " + value.String()
			}
			got[key] += p.Count
		}
	}
	want := make(map[string]uint64)
	for outcome, n := range map[string]uint64{
		"bounded 200": 1, "repeated 200": 1, "repeated 404": 1, "foreign 200": 1, "foreign 404": 1, "own_times 200": 1,
		"failed 429": 1, "failed 500": 2, "failed ": 1, "canceled ": 1,
	} {
		want["traceflake.lookup.duration in s tempo "+outcome] = n
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The parameters are those that each API reads. What is not a lookup by an ID with a time goes
// through as it is.
func TestParameters(t *testing.T) {
	ours := newID(t, time.Date(2024, 1, 2, 4, 4, 5, 6e6, time.UTC)).String() // begins with a zero
	later := newID(t, time.Now().Add(48*time.Hour)).String()
	const bound = "end=4102444800&start=1704164645" // an hour before
	for _, tt := range []struct {
		backend    Backend
		path, want string // the queries that the client sends and the server gets
	}{
		{Tempo, "/api/traces/" + ours, bound},
		{Tempo, "/api/traces/" + ours + "/", bound},
		{Tempo, "/api/traces/" + strings.TrimLeft(ours, "0"), bound},
		{Tempo, "/tempo/api/v2/traces/" + ours + "?mode=blocks&x=%20", "mode=blocks&x=%20&" + bound},
		{Jaeger, "/api/traces/" + ours + "?prettyPrint=true", "prettyPrint=true&start=1704164645006000"},
		{Jaeger, "/jaeger/api/v3/traces/" + ours, "startTime=2024-01-02T03%3A04%3A05.006Z&start_time=2024-01-02T03%3A04%3A05.006Z"},

		{Tempo, "/api/v2/traces/" + ours + "?start=1&end=2", "start=1&end=2"}, // Grafana with timeShiftEnabled
		{Tempo, "/api/v2/traces/" + ours + "?end=2", "end=2"},
		{Tempo, "/api/v2/traces/" + ours + "?a=%zz", "a=%zz"},
		{Tempo, "/api/search?q={}", "q={}"},
		{Tempo, "/api/v3/traces/" + ours, ""},
		{Tempo, "/" + ours, ""},
		{Tempo, "/api/traces/" + later, ""},
		{Tempo, "/api/traces/4bf92f3577b34da6", ""},                  // 64 bits: no time
		{Tempo, "/api/traces/" + ours[:16] + "0123456789abcdef", ""}, // foreign
		{Tempo, "/api/traces/" + ours + ours, ""},
		{Tempo, "POST /api/traces/" + ours, ""},
		{Tempo, "GET with a body /api/traces/" + ours, ""},
		{Jaeger, "/api/v3/traces/" + ours + "?endTime=2026-01-01T00:00:00Z", "endTime=2026-01-01T00:00:00Z"},
		{Jaeger, "/api/v2/traces/" + ours, ""},
	} {
		address, queries, _ := server(t, failed, missing)
		method, path, _ := strings.Cut(tt.path, "/")
		var body io.Reader
		if strings.HasSuffix(method, "body ") {
			body = strings.NewReader("body")
		}
		method, _, _ = strings.Cut(method, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, address+"/"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client(t, tt.backend).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if len(*queries) != 1 || (*queries)[0] != tt.want {
			t.Errorf("%s %s: %q, want %s", tt.backend, tt.path, *queries, tt.want)
		}
	}
}

func TestNew(t *testing.T) {
	for _, option := range []Option{WithSlack(-1), WithVerifier(nil)} {
		if _, err := New(Tempo, option); err == nil {
			t.Error("no error")
		}
	}
	if _, err := New("zipkin"); err == nil {
		t.Error("zipkin: no error")
	}
}
