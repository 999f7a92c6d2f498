package lookup

import (
	"cmp"
	"context"
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

// Options of [New]. The zero value has the defaults.
type Options struct {
	// Slack is how much earlier than the time in its ID a trace may have spans. It must exceed
	// twice the error of the worst clock in the fleet. 0 means an hour.
	Slack time.Duration
	// Timeout is how long a lookup may take, repeated request and body included, like the Timeout
	// of an [http.Client]. 0 means no limit. Other requests are not limited: they may be streams.
	Timeout time.Duration
	// Verify returns whether the time of an ID is used, like [traceid.Verifier.Verify] with a
	// maximum age as long as traces are kept. Nil means that every plausible time is.
	Verify func(trace.TraceID) bool
	// Transport sends the requests. Nil means [http.DefaultTransport].
	Transport http.RoundTripper
	// MeterProvider provides the metrics. Nil means the global one.
	MeterProvider metric.MeterProvider
}

// transport is the result of New.
type transport struct {
	Options
	backend  Backend
	duration metric.Float64Histogram
}

// New returns a transport that adds a lower bound of time to requests for a trace by its ID, to a
// server of one kind. Other requests, requests with times or with a body, and those for an ID
// without a plausible time are passed on unchanged. If the server finds nothing, the transport
// sends the original request and returns its response. It is safe for concurrent use.
//
// New returns an error if the backend is unknown or a duration is negative.
func New(b Backend, o Options) (http.RoundTripper, error) {
	switch {
	case bounds[b] == nil:
		return nil, fmt.Errorf("lookup: unknown backend %q: use Tempo or Jaeger", b)
	case o.Slack < 0:
		return nil, fmt.Errorf("lookup: the slack is %s, it must not be negative", o.Slack)
	case o.Timeout < 0:
		return nil, fmt.Errorf("lookup: the timeout is %s, it must not be negative", o.Timeout)
	}
	o.Slack = cmp.Or(o.Slack, time.Hour)
	t := &transport{Options: o, backend: b}
	var err error
	meter := cmp.Or(o.MeterProvider, otel.GetMeterProvider()).Meter(
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

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	params, id := t.backend.lookup(req.URL.Path)
	if params == nil || req.Method != http.MethodGet || req.Body != nil && req.Body != http.NoBody {
		return t.send(req)
	}
	began := time.Now()
	ctx, end := req.Context(), context.CancelFunc(func() {})
	if t.Timeout > 0 {
		ctx, end = context.WithTimeout(ctx, t.Timeout)
	}
	resp, outcome, err := t.find(req.WithContext(ctx), params, id)
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
func (t *transport) send(req *http.Request) (*http.Response, error) {
	return cmp.Or(t.Transport, http.DefaultTransport).RoundTrip(req)
}

// find sends a lookup, with a time if it has none, and repeats it without the time if the server
// found nothing.
func (t *transport) find(req *http.Request, params bound, id trace.TraceID) (resp *http.Response,
	outcome string, err error) {
	bounded, outcome := t.bounded(req, params, id)
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
func (t *transport) bounded(req *http.Request, params bound, id trace.TraceID) (
	bounded *http.Request, outcome string) {
	query, err := url.ParseQuery(req.URL.RawQuery)
	if err != nil {
		return nil, outcomeUnparsable
	}
	for _, name := range times {
		if query.Has(name) {
			return nil, outcomeOwnTimes
		}
	}
	start := traceid.NotBefore(id, t.Slack)
	if start.IsZero() || t.Verify != nil && !t.Verify(id) {
		return nil, outcomeForeign
	}
	bounded = req.Clone(req.Context())
	if bounded.URL.RawQuery != "" {
		bounded.URL.RawQuery += "&"
	}
	bounded.URL.RawQuery += params(start).Encode()
	return bounded, outcomeBounded
}
