package lookup

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/metrictest"
	"github.com/traceflake/traceflake/traceid"
)

// answer is a server's response.
type answer struct {
	status int
	body   string
}

var (
	missing = answer{status: http.StatusNotFound, body: "trace not found"}
	empty   = answer{status: 200, body: `{"trace":{},"metrics":{}}`}
	found   = answer{status: 200, body: strings.Repeat("x", emptyLen+1)}
	failed  = answer{status: http.StatusInternalServerError, body: "boom"}
)

// server answers with bounded if the request has a start. It records the queries, and counts the
// connections.
func server(t *testing.T, bounded, plain answer) (address string, queries *[]string,
	opened *atomic.Int32) {
	queries, opened = new([]string), new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*queries = append(*queries, r.URL.RawQuery)
		a := plain
		if r.URL.Query().Has("start") {
			a = bounded
		}
		// A redirect's may have the added time, which would then look like the client's own.
		w.Header().Set("Location", "/api/v2/traces/1?start=1")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
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

func client(t *testing.T, b Backend, o Options) *http.Client {
	t.Helper()
	tr, err := New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: tr}
}

// low is the low half of IDs that newID returns.
const low = 0x86cdcca4ab608495

func newID(t *testing.T, at time.Time) string {
	t.Helper()
	id, err := traceid.New(at, 7, low)
	if err != nil {
		t.Fatal(err)
	}
	return id.String()
}

// If the server may have found nothing with the bound, the response is that of the original
// request, and the connection of the first response is reused. The metric shows the outcome and the
// status.
func TestRoundTrip(t *testing.T) {
	ours, foreign := newID(t, time.Now()), "4bf92f3577b34da6a3ce929d0e0e4736"
	whole := answer{status: 200, body: `{"batches":["the whole trace"]}`}
	for name, tt := range map[string]struct {
		id             string // and a query
		bounded, plain answer
		requests       int // 0 if there is no response
		outcome        string
	}{
		"404": {ours, missing, whole, 2, "repeated 200"},
		"400": {ours, answer{status: 400, body: strings.Repeat("x", 5000)}, whole, 2,
			"repeated 200"},
		"empty":   {ours, empty, whole, 2, "repeated 200"},
		"no body": {ours, answer{status: 200}, whole, 2, "repeated 200"},
		"the longest empty": {ours, answer{status: 200, body: found.body[1:]}, whole, 2,
			"repeated 200"},
		"redirect":      {ours, answer{status: 307}, whole, 2, "repeated 200"},
		"404 twice":     {ours, missing, missing, 2, "repeated 404"},
		"404, then 500": {ours, missing, failed, 2, "failed 500"},
		"found":         {ours, found, whole, 1, "bounded 200"},
		"500":           {ours, failed, whole, 1, "failed 500"},
		"204":           {ours, answer{status: 204}, whole, 1, "failed 204"},
		"unparsable":    {ours + "?a=%zz", found, whole, 1, "unparsable 200"},
		"own times":     {ours + "?start=1", found, whole, 1, "own_times 200"},
		"foreign":       {foreign, found, whole, 1, "foreign 200"},
		"foreign, 404":  {foreign, found, missing, 1, "foreign 404"},
		"foreign, 500":  {foreign, found, failed, 1, "failed 500"},
		"no ID":         {"nope", found, whole, 1, ""},
		"refused":       {ours, found, whole, 0, "failed"},
		"canceled":      {ours, found, whole, 0, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			address, queries, opened := server(t, tt.bounded, tt.plain)
			address += "/api/v2/traces/" + tt.id
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			switch name {
			case "refused":
				address = "http://127.0.0.1:1/api/traces/" + ours
			case "canceled":
				cancel()
			}
			reader := sdkmetric.NewManualReader()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
			resp, err := client(t, Tempo, Options{MeterProvider: meters}).Do(req)
			if len(*queries) != tt.requests || (err == nil) != (tt.requests > 0) {
				t.Fatalf("requests %q, %v; want %d", *queries, err, tt.requests)
			}
			if err == nil {
				want := tt.plain
				if strings.Contains((*queries)[tt.requests-1], "start") {
					want = tt.bounded
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil || string(body) != want.body || resp.StatusCode != want.status ||
					resp.Request.URL.String() != address || opened.Load() != 1 {
					t.Errorf("got %d %.40q, %v to %s on %d connections; want %d %.40q",
						resp.StatusCode, body, err, resp.Request.URL, opened.Load(), want.status,
						want.body)
				}
			}
			outcome, status, answered := strings.Cut(tt.outcome, " ")
			want := "outcome=" + outcome + ",traceflake.backend=tempo"
			if answered {
				want = "http.response.status_code=" + status + "," + want
			}
			series := metrictest.Collect(t, reader)
			if tt.outcome == "" && len(series) == 0 {
				return // not a lookup
			}
			if len(series) != 1 || series["traceflake.lookup.duration s "+want] != 1 {
				t.Errorf("got %v, want %s once", series, want)
			}
		})
	}
}

// The parameters are those that each API reads. Requests that are not lookups by an ID with a time
// are sent unchanged.
func TestParameters(t *testing.T) {
	ours := newID(t, time.Date(2024, 1, 2, 4, 4, 5, 6e6, time.UTC)) // begins with a zero
	later := newID(t, time.Now().Add(48*time.Hour))
	sent := func(b Backend, req *http.Request) (queries []string) {
		next := roundTrip(func(r *http.Request) (*http.Response, error) {
			queries = append(queries, r.URL.RawQuery)
			return &http.Response{StatusCode: http.StatusInternalServerError, Body: http.NoBody},
				nil
		})
		verify := func(id trace.TraceID) bool { return traceid.Low(id) == low }
		c := client(t, b, Options{Transport: next, Verify: verify})
		_, err := c.Transport.RoundTrip(req)
		if err != nil {
			t.Error(err)
		}
		return queries
	}
	const bound = "end=4102444800&start=1704164645" // an hour before
	for _, tt := range []struct {
		backend    Backend
		path, want string // the queries that the client sends and the server gets
	}{
		{Tempo, "/api/traces/" + ours, bound},
		{Tempo, "/api/traces/" + ours + "/", bound},
		{Tempo, "/api/traces/" + strings.TrimLeft(ours, "0"), bound},
		{Tempo, "/tempo/api/v2/traces/" + ours + "?mode=blocks&x=%20",
			"mode=blocks&x=%20&" + bound},
		{Jaeger, "/api/traces/" + ours + "?prettyPrint=true",
			"prettyPrint=true&start=1704164645006000"},
		{Jaeger, "/jaeger/api/v3/traces/" + ours,
			"startTime=2024-01-02T03%3A04%3A05.006Z&start_time=2024-01-02T03%3A04%3A05.006Z"},

		// Grafana with timeShiftEnabled
		{Tempo, "/api/v2/traces/" + ours + "?start=1&end=2", "start=1&end=2"},
		{Tempo, "/api/v2/traces/" + ours + "?end=2", "end=2"},
		{Tempo, "/api/v2/traces/" + ours + "?a=%zz", "a=%zz"},
		{Tempo, "/api/search?q={}", "q={}"},
		{Tempo, "/api/v3/traces/" + ours, ""},
		{Tempo, "/" + ours, ""},
		{Tempo, "/api/traces/" + later, ""},
		{Tempo, "/api/traces/4bf92f3577b34da6", ""},                  // 64 bits: no time
		{Tempo, "/api/traces/" + ours[:16] + "0123456789abcdef", ""}, // foreign
		{Tempo, "/api/traces/" + ours + ours, ""},
		{Jaeger, "/api/v3/traces/" + ours + "?endTime=2026-01-01T00:00:00Z",
			"endTime=2026-01-01T00:00:00Z"},
		{Jaeger, "/api/v2/traces/" + ours, ""},
	} {
		if got := sent(tt.backend, httptest.NewRequest(http.MethodGet, tt.path,
			nil)); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s %s: %q, want %s", tt.backend, tt.path, got, tt.want)
		}
	}
	for method, body := range map[string]io.Reader{http.MethodPost: nil,
		http.MethodGet: strings.NewReader("body")} {
		if got := sent(Tempo, httptest.NewRequest(method, "/api/traces/"+ours,
			body)); !slices.Equal(got, []string{""}) {
			t.Errorf("%s: %q", method, got)
		}
	}
}

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		backend Backend
		options Options
	}{{Tempo, Options{Slack: -1}}, {Tempo, Options{Timeout: -1}}, {"zipkin", Options{}}} {
		if _, err := New(tt.backend, tt.options); err == nil {
			t.Errorf("%s: no error", tt.backend)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The timeout bounds a lookup as a whole: two requests, and what the server sends slowly or without
// an end. Afterwards nothing is kept open at the server.
func TestTimeout(t *testing.T) {
	const timeout = 300 * time.Millisecond
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"no header": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"an endless 404": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			drip(w, r)
		},
		"a stalled 200": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "hello")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"two slow ones": func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(timeout * 2 / 3)
			http.NotFound(w, r)
		},
		"an endless trace": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, found.body)
			drip(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(handler)
			defer s.Close() // waits for the handlers
			began := time.Now()
			c := client(t, Tempo, Options{Timeout: timeout})
			resp, err := c.Get(s.URL + "/api/traces/" + newID(t, time.Now()))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			var network net.Error
			if !errors.As(err, &network) || !network.Timeout() {
				t.Errorf("got %v, want a timeout", err)
			}
			if took := time.Since(began); took > 2*timeout {
				t.Errorf("it took %s", took)
			}
		})
	}
}
