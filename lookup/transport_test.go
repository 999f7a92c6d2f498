package lookup

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// answer is what a server says to requests with a bound and without.
type answer struct {
	status         int
	media, coding  string
	body           string
	location       string
	contentUnknown bool // sent in chunks
}

var (
	missing    = answer{status: http.StatusNotFound, body: "trace not found"}
	emptyJSON  = answer{status: 200, media: "application/json", body: `{"trace":{},"metrics":{}}`}
	emptyProto = answer{status: 200, media: "application/protobuf", body: "\x0a\x00\x12\x00"}
	small      = answer{status: 200, media: "application/json", body: `{"batches":[{"spans":[{"spanId":"AQ=="}]}]}`}
	large      = answer{status: 200, media: "application/json", body: strings.Repeat("x", 5000)}
	failed     = answer{status: http.StatusInternalServerError, body: "boom"}
	// An empty body as zstd frames it; only a decoder could tell.
	zstd = answer{status: 200, media: "application/json", coding: "zstd", body: "\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00"}
)

func zipped(a answer) answer {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, a.body)
	_ = w.Close()
	a.coding, a.body = "gzip", b.String()
	return a
}

func (a answer) write(w http.ResponseWriter) {
	if a.media != "" {
		w.Header().Set("Content-Type", a.media)
	}
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	if a.coding != "" {
		w.Header().Set("Content-Encoding", a.coding)
	}
	if !a.contentUnknown {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// server answers with bounded if the request has a start, and records the queries.
func server(t *testing.T, bounded, plain answer) (address string, queries *[]string) {
	queries = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*queries = append(*queries, r.URL.RawQuery)
		if q := r.URL.Query(); q.Has("start") || q.Has("start_time") {
			bounded.write(w)
			return
		}
		plain.write(w)
	}))
	t.Cleanup(s.Close)
	return s.URL, queries
}

func client(t *testing.T, b Backend, opts ...Option) *http.Client {
	t.Helper()
	raw := http.DefaultTransport.(*http.Transport).Clone()
	raw.DisableCompression = true // encodings are the client's
	t.Cleanup(raw.CloseIdleConnections)
	verify := WithVerifier(func(id trace.TraceID) bool { return traceid.Low(id) == low })
	tr, err := New(b, append([]Option{WithTransport(raw), verify}, opts...)...)
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
// it came.
func TestRepeats(t *testing.T) {
	chunked := emptyJSON
	chunked.contentUnknown = true
	for name, tt := range map[string]struct {
		bounded answer
		repeats bool
	}{
		"404": {missing, true}, "400": {answer{status: 400, body: "unknown parameter"}, true},
		"empty JSON": {emptyJSON, true}, "empty JSON, gzip": {zipped(emptyJSON), true}, "in chunks": {chunked, true},
		"empty protobuf": {emptyProto, true}, "empty protobuf, gzip": {zipped(emptyProto), true},
		"no body": {answer{status: 200, media: "application/protobuf"}, true},
		"zstd":    {zstd, true}, "broken gzip": {answer{status: 200, coding: "gzip", body: "no"}, true},
		"unknown media": {answer{status: 200, media: "application/vnd.other", body: "?"}, true},
		"one span":      {small, false}, "one span, gzip": {zipped(small), false}, "large": {large, false},
		"protobuf": {answer{status: 200, media: "application/protobuf", body: "\x0a\x02\x12\x00"}, false},
		"500":      {failed, false}, "429": {answer{status: 429}, false}, "401": {answer{status: 401}, false},
		// Its Location may have the added time, which would then look like the client's own.
		"redirect": {answer{status: 307, location: "/api/v2/traces/1?start=1"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			plain := answer{status: 200, media: "application/json", body: `{"batches":["the whole trace"]}`}
			address, queries := server(t, tt.bounded, plain)
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
			if got := resp.Header.Get("Content-Encoding"); got != want.coding {
				t.Errorf("encoding %q, want %q", got, want.coding)
			}
			if len(*queries) != requests || resp.Request.URL.RawQuery != "" {
				t.Errorf("requests %q, answer to %q", *queries, resp.Request.URL.RawQuery)
			}
		})
	}
}

// A response that is not used leaves its connection to the next request.
func TestConnections(t *testing.T) {
	for name, bounded := range map[string]answer{"404": missing, "400": {status: 400, body: strings.Repeat("x", 5000)}, "200": emptyJSON} {
		var opened atomic.Int32
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("start") {
				bounded.write(w)
				return
			}
			small.write(w)
		}))
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		s.Start()
		c := client(t, Tempo)
		for range 20 {
			resp, err := c.Get(s.URL + "/api/traces/" + newID(t, time.Now()).String())
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		s.Close()
		if n := opened.Load(); n != 1 {
			t.Errorf("%s: 20 lookups opened %d connections", name, n)
		}
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
		{ours, small, small, nil}, {ours, missing, small, nil}, {ours, missing, missing, nil},
		{foreign, small, small, nil}, {foreign, small, missing, nil}, {ours + "?start=1", small, small, nil},
		{ours, answer{status: 429}, small, nil}, {ours, missing, failed, nil}, {foreign, small, failed, nil},
		{ours, small, small, refused}, {ours, small, small, context.Canceled},
	} {
		address, _ := server(t, tt.bounded, tt.plain)
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
	want := map[string]uint64{
		"bounded 200": 1, "repeated 200": 1, "repeated 404": 1, "foreign 200": 1, "foreign 404": 1, "own_times 200": 1,
		"failed 429": 1, "failed 500": 2, "failed 0": 1, "canceled 0": 1,
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]uint64)
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "traceflake.lookup.duration" || m.Unit != "s" {
			t.Errorf("metric %s in %s", m.Name, m.Unit)
		}
		for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
			outcome, _ := p.Attributes.Value("outcome")
			status, _ := p.Attributes.Value("http.response.status_code")
			got[fmt.Sprint(outcome.AsString(), " ", status.AsInt64())] += p.Count
			if backend, _ := p.Attributes.Value("traceflake.backend"); backend.AsString() != "tempo" {
				t.Errorf("backend %q", backend.AsString())
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The parameters are those that each API reads.
func TestParameters(t *testing.T) {
	at := time.Now().Add(-48 * time.Hour).Truncate(time.Millisecond)
	start := at.Add(-DefaultSlack)
	for _, tt := range []struct {
		backend    Backend
		path, more string
		want       url.Values
	}{
		{Tempo, "/api/traces/", "", url.Values{"start": {unix(start, time.Second)}, "end": {"4102444800"}}},
		{Tempo, "/tempo/api/v2/traces/", "mode=blocks&x=%20", url.Values{"start": {unix(start, time.Second)}, "end": {"4102444800"}, "mode": {"blocks"}, "x": {" "}}},
		{Jaeger, "/api/traces/", "prettyPrint=true", url.Values{"start": {unix(start, time.Microsecond)}, "prettyPrint": {"true"}}},
		{Jaeger, "/jaeger/api/v3/traces/", "", url.Values{
			"start_time": {start.UTC().Format(time.RFC3339Nano)}, "startTime": {start.UTC().Format(time.RFC3339Nano)},
		}},
	} {
		address, queries := server(t, small, missing)
		resp, err := client(t, tt.backend).Get(address + tt.path + newID(t, at).String() + "?" + tt.more)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got, _ := url.ParseQuery((*queries)[0]); got.Encode() != tt.want.Encode() {
			t.Errorf("%s %s: %v, want %v", tt.backend, tt.path, got, tt.want)
		}
	}
}

func unix(t time.Time, unit time.Duration) string {
	return strconv.FormatInt(t.UnixNano()/int64(unit), 10)
}

// What is not a lookup by an ID with a time goes through as it is.
func TestUnchanged(t *testing.T) {
	ours := newID(t, time.Now()).String()
	future := newID(t, time.Now().Add(48*time.Hour)).String()
	for _, tt := range []struct {
		backend      Backend
		method, path string
		body         io.Reader
	}{
		{Tempo, "GET", "/api/v2/traces/" + ours + "?start=1&end=2", nil}, // Grafana with timeShiftEnabled
		{Tempo, "GET", "/api/v2/traces/" + ours + "?end=2", nil},
		{Tempo, "GET", "/api/v2/traces/" + ours + "?a=%zz", nil},
		{Tempo, "GET", "/api/search?q={}", nil},
		{Tempo, "GET", "/api/v3/traces/" + ours, nil},
		{Tempo, "GET", "/" + ours, nil},
		{Tempo, "GET", "/api/traces/" + future, nil},
		{Tempo, "GET", "/api/traces/4bf92f3577b34da6", nil},                  // 64 bits: no time
		{Tempo, "GET", "/api/traces/" + ours[:16] + "0123456789abcdef", nil}, // foreign
		{Tempo, "GET", "/api/traces/" + ours + ours, nil},
		{Tempo, "POST", "/api/traces/" + ours, nil},
		{Tempo, "GET", "/api/traces/" + ours, strings.NewReader("body")},
		{Jaeger, "GET", "/api/traces?service=a&start=1", nil},
		{Jaeger, "GET", "/api/v3/traces/" + ours + "?endTime=2026-01-01T00:00:00Z", nil},
		{Jaeger, "GET", "/api/v2/traces/" + ours, nil},
	} {
		address, queries := server(t, failed, missing)
		req, err := http.NewRequestWithContext(t.Context(), tt.method, address+tt.path, tt.body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client(t, tt.backend).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		_, want, _ := strings.Cut(tt.path, "?")
		if len(*queries) != 1 || (*queries)[0] != want {
			t.Errorf("%s %s: %q", tt.method, tt.path, *queries)
		}
	}
}

// An error of the connection, also in the middle of a small body, is the client's to see.
func TestErrors(t *testing.T) {
	broken := errors.New("connection reset")
	path := "http://127.0.0.1/api/traces/" + newID(t, time.Now()).String()
	c := client(t, Tempo, WithTransport(roundTrip(func(*http.Request) (*http.Response, error) { return nil, broken })))
	if _, err := c.Get(path); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	c = client(t, Tempo, WithTransport(roundTrip(func(*http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader(`{"batches":`), iotest.ErrReader(broken))
		return &http.Response{StatusCode: 200, ContentLength: -1, Body: io.NopCloser(body), Header: http.Header{}}, nil
	})))
	resp, err := c.Get(path)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); !errors.Is(err, broken) || string(body) != `{"batches":` {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestNew(t *testing.T) {
	for _, option := range []Option{WithSlack(-1), WithVerifier(nil)} {
		if _, err := New(Tempo, option); err == nil {
			t.Error("no error")
		}
	}
	if _, err := New(0); err == nil {
		t.Error("backend 0: no error")
	}
}
