package lookup

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/version"
	"github.com/traceflake/traceflake/traceid"
)

// DefaultSlack is how much earlier than the time in its ID a trace may have spans.
const DefaultSlack = time.Hour

// Transport is an [http.RoundTripper] that adds a lower bound of time to requests for a trace by
// its ID. Other requests, requests with times or with a body, and those for an ID without a
// plausible time are passed on as they are. It is safe for concurrent use.
type Transport struct {
	backend  Backend
	slack    time.Duration
	verify   func(trace.TraceID) bool
	next     http.RoundTripper
	meters   metric.MeterProvider
	requests metric.Int64Counter

	// Tests replace the fields below by wrong ones.
	notBefore func(trace.TraceID, time.Duration) time.Time
	missed    func(*http.Response) bool
}

// Option configures a [Transport].
type Option interface{ apply(*Transport) }

type optionFunc func(*Transport)

func (f optionFunc) apply(t *Transport) { f(t) }

// WithSlack sets how much earlier than the time in its ID a trace may have spans; the default is
// [DefaultSlack]. It must exceed twice the error of the worst clock in the fleet and must not be
// negative.
func WithSlack(d time.Duration) Option {
	return optionFunc(func(t *Transport) { t.slack = d })
}

// WithVerifier uses the time only of IDs for which verify returns true, such as
// [traceid.Verifier.Verify] with a maximum age as long as traces are kept. By default all IDs with
// a plausible time are used.
func WithVerifier(verify func(trace.TraceID) bool) Option {
	return optionFunc(func(t *Transport) { t.verify = verify })
}

// WithTransport sets what sends the requests; the default is [http.DefaultTransport].
func WithTransport(next http.RoundTripper) Option {
	return optionFunc(func(t *Transport) { t.next = next })
}

// WithMeterProvider sets where the metrics go; the default is OpenTelemetry's global provider.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return optionFunc(func(t *Transport) { t.meters = mp })
}

// New returns a transport for servers of one kind. It returns an error if the backend is unknown
// or an option is out of its range.
func New(b Backend, opts ...Option) (*Transport, error) {
	t := &Transport{
		backend: b, slack: DefaultSlack, next: http.DefaultTransport, meters: otel.GetMeterProvider(),
		notBefore: traceid.NotBefore, missed: missed,
	}
	for _, o := range opts {
		o.apply(t)
	}
	switch {
	case b != Tempo && b != Jaeger:
		return nil, fmt.Errorf("lookup: %s: use Tempo or Jaeger", b)
	case t.slack < 0:
		return nil, fmt.Errorf("lookup: the slack is %s, it must not be negative", t.slack)
	case t.next == nil, t.meters == nil:
		return nil, errors.New("lookup: an option is nil")
	}
	var err error
	t.requests, err = t.meters.Meter("github.com/traceflake/traceflake/lookup",
		metric.WithInstrumentationVersion(version.Library())).
		Int64Counter("traceflake.lookup.requests", metric.WithUnit("{request}"),
			metric.WithDescription("Requests for a trace by its ID, by whether a time was added and the server found something."))
	if err != nil {
		return nil, fmt.Errorf("lookup: metrics: %w", err)
	}
	return t, nil
}

// RoundTrip sends the request. If it adds a time and the server finds nothing, the response is
// that of the request as it came.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	bounded := t.bounded(req)
	if bounded == nil {
		return t.next.RoundTrip(req)
	}
	resp, err := t.next.RoundTrip(bounded)
	if err != nil {
		t.count(req, "error")
		return nil, err
	}
	if !t.missed(resp) {
		t.count(req, "bounded")
		resp.Request = req
		return resp, nil
	}
	_ = resp.Body.Close()
	t.count(req, "repeated")
	return t.next.RoundTrip(req)
}

// bounded returns a copy of req with a lower bound of time, or nil if req must stay as it is.
func (t *Transport) bounded(req *http.Request) *http.Request {
	if req.Method != http.MethodGet || req.Body != nil && req.Body != http.NoBody {
		return nil
	}
	api, id := t.backend.lookup(req.URL.Path)
	if api == none {
		return nil
	}
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil // the server's to judge
	}
	for _, name := range times[api] {
		if query.Has(name) {
			t.count(req, "own_times")
			return nil
		}
	}
	start := t.notBefore(id, t.slack)
	if start.IsZero() || t.verify != nil && !t.verify(id) {
		t.count(req, "foreign")
		return nil
	}
	bounded := req.Clone(req.Context())
	if bounded.URL.RawQuery != "" {
		bounded.URL.RawQuery += "&"
	}
	bounded.URL.RawQuery += api.bound(start).Encode()
	return bounded
}

func (t *Transport) count(req *http.Request, outcome string) {
	t.requests.Add(req.Context(), 1, metric.WithAttributes(
		attribute.String("traceflake.backend", t.backend.String()), attribute.String("outcome", outcome)))
}
