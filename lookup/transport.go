package lookup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
// plausible time are passed on unchanged. It is safe for concurrent use. A zero Transport passes
// every request on.
type Transport struct {
	backend  Backend
	slack    time.Duration
	timeout  time.Duration // 0: none
	verify   func(trace.TraceID) bool
	next     http.RoundTripper
	meters   metric.MeterProvider
	duration metric.Float64Histogram
}

// Option configures a [Transport].
type Option func(*Transport)

// WithSlack sets how much earlier than the time in its ID a trace may have spans; the default is
// [DefaultSlack]. It must exceed twice the error of the worst clock in the fleet and must not be
// negative.
func WithSlack(d time.Duration) Option {
	return func(t *Transport) { t.slack = d }
}

// WithTimeout sets how long a lookup may take, repeated request and body included, like the
// Timeout of an [http.Client]; the default, 0, is no limit. Other requests are not limited: they
// may be streams.
func WithTimeout(d time.Duration) Option {
	return func(t *Transport) { t.timeout = d }
}

// WithVerifier uses the time only of IDs for which verify returns true, such as
// [traceid.Verifier.Verify] with a maximum age as long as traces are kept. By default all IDs with
// a plausible time are used. A nil verify is an error.
func WithVerifier(verify func(trace.TraceID) bool) Option {
	return func(t *Transport) { t.verify = verify }
}

// WithTransport sets the transport that sends the requests; the default, and nil, is
// [http.DefaultTransport].
func WithTransport(next http.RoundTripper) Option {
	return func(t *Transport) { t.next = next }
}

// WithMeterProvider sets the provider of the metrics; the default, and nil, is the global one.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return func(t *Transport) { t.meters = mp }
}

// New returns a transport for servers of one kind. It returns an error if the backend is unknown
// or an option is out of its range.
func New(b Backend, opts ...Option) (*Transport, error) {
	t := &Transport{backend: b, slack: DefaultSlack,
		verify: func(trace.TraceID) bool { return true }}
	for _, o := range opts {
		if o != nil {
			o(t)
		}
	}
	switch {
	case b != Tempo && b != Jaeger:
		return nil, fmt.Errorf("lookup: unknown backend %q: use Tempo or Jaeger", b)
	case t.slack < 0:
		return nil, fmt.Errorf("lookup: the slack is %s, it must not be negative", t.slack)
	case t.timeout < 0:
		return nil, fmt.Errorf("lookup: the timeout is %s, it must not be negative", t.timeout)
	case t.verify == nil:
		return nil, errors.New("lookup: WithVerifier got no function")
	}
	var err error
	meter := cmp.Or(t.meters, otel.GetMeterProvider()).Meter(
		"github.com/traceflake/traceflake/lookup",
		metric.WithInstrumentationVersion(version.Library()))
	t.duration, err = meter.Float64Histogram("traceflake.lookup.duration", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(
			0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
		metric.WithDescription("Time until the response to a request for a trace by its ID, "+
			"by outcome and status."))
	if err != nil {
		return nil, fmt.Errorf("lookup: metrics: %w", err)
	}
	return t, nil
}

// The outcomes of a lookup.
const (
	outcomeBounded    = "bounded"    // the trace came with the added time
	outcomeRepeated   = "repeated"   // repeated without it
	outcomeForeign    = "foreign"    // no plausible time in the ID
	outcomeOwnTimes   = "own_times"  // the client sent times
	outcomeUnparsable = "unparsable" // the query may contain times
	outcomeFailed     = "failed"     // no response, or neither the trace nor "not found"
	outcomeCanceled   = "canceled"   // by the client
)

// RoundTrip sends the request. If it adds a time and the server finds nothing, it sends the
// original request and returns its response.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	form, id := t.backend.lookup(req.URL.Path)
	if form == none || req.Method != http.MethodGet || req.Body != nil && req.Body != http.NoBody {
		return t.send(req)
	}
	began := time.Now()
	ctx, end := req.Context(), context.CancelFunc(func() {})
	if t.timeout > 0 {
		ctx, end = context.WithTimeout(ctx, t.timeout)
	}
	resp, outcome, err := t.find(req.WithContext(ctx), form, id)
	attrs := []attribute.KeyValue{attribute.String("traceflake.backend", string(t.backend))}
	switch {
	case err != nil && req.Context().Err() != nil:
		outcome = outcomeCanceled
	case err != nil:
		outcome = outcomeFailed
	default:
		if resp.StatusCode != http.StatusOK && !notFound(resp) {
			outcome = outcomeFailed
		}
		attrs = append(attrs, attribute.Int("http.response.status_code", resp.StatusCode))
	}
	t.duration.Record(req.Context(), time.Since(began).Seconds(),
		metric.WithAttributes(append(attrs, attribute.String("outcome", outcome))...))
	if err != nil {
		end()
		return nil, err
	}
	resp.Request, resp.Body = req, &body{resp.Body, end}
	return resp, nil
}

// send sends a request unchanged.
func (t *Transport) send(req *http.Request) (*http.Response, error) {
	return cmp.Or(t.next, http.DefaultTransport).RoundTrip(req)
}

// find sends a lookup, with a time if it has none, and repeats it without the time if the server
// found nothing.
func (t *Transport) find(req *http.Request, form api, id trace.TraceID) (resp *http.Response,
	outcome string, err error) {
	bounded, outcome := t.bounded(req, form, id)
	if bounded == nil {
		resp, err = t.send(req)
		return resp, outcome, err
	}
	resp, err = t.send(bounded)
	if err != nil {
		return nil, outcome, err
	}
	if !missed(resp) {
		return resp, outcome, nil
	}
	// A connection is reused only if its response was read to the end.
	const most = 64 << 10
	_, _ = io.CopyN(io.Discard, resp.Body, most)
	_ = resp.Body.Close()
	resp, err = t.send(req)
	return resp, outcomeRepeated, err
}

// bounded returns a copy of req with a lower bound of time, or nil and the reason why req must not
// be changed.
func (t *Transport) bounded(req *http.Request, form api, id trace.TraceID) (bounded *http.Request,
	outcome string) {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, outcomeUnparsable
	}
	for _, name := range times[form] {
		if query.Has(name) {
			return nil, outcomeOwnTimes
		}
	}
	start := traceid.NotBefore(id, t.slack)
	if start.IsZero() || !t.verify(id) {
		return nil, outcomeForeign
	}
	bounded = req.Clone(req.Context())
	if bounded.URL.RawQuery != "" {
		bounded.URL.RawQuery += "&"
	}
	bounded.URL.RawQuery += form.bound(start).Encode()
	return bounded, outcomeBounded
}
