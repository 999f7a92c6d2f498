// Package tracing has only tests: traces through services that use OpenTelemetry's other
// libraries, such as otelhttp and autoprop, which the root module does not require.
package tracing

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

const (
	traceT = "32d1f0a9c8000005a1b2c3d4e5f60718" // x-trace-id in most cases
	traceU = "32d1f0a9c8000006ffeeddccbbaa9988" // another trace
	lowT   = "a1b2c3d4e5f60718"
	low64  = "00f067aa0ba902b7" // a 64-bit trace ID that is not T's low half
	spanS  = "53995c3f42cd8ad8"
)

// rootSampler samples all roots and counts its calls.
type rootSampler struct{ asked atomic.Int64 }

func (s *rootSampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s.asked.Add(1)
	return sdktrace.AlwaysSample().ShouldSample(p)
}

func (s *rootSampler) Description() string { return "root" }

// service is a server with its own SDK.
type service struct {
	*httptest.Server
	provider *sdktrace.TracerProvider
	spans    *tracetest.SpanRecorder
	root     *rootSampler
}

type serviceConfig struct {
	propagator propagation.TextMapPropagator
	sampler    sdktrace.Sampler // default: ParentBased(rootSampler)
	options    []otelhttp.Option
	outside    func(http.Handler) http.Handler // around otelhttp's handler
	setup      func(*httptest.Server)          // default: start
}

func startService(t *testing.T, h http.Handler, c serviceConfig) *service {
	t.Helper()
	s := &service{spans: tracetest.NewSpanRecorder(), root: &rootSampler{}}
	if c.sampler == nil {
		c.sampler = sdktrace.ParentBased(s.root)
	}
	if c.propagator == nil {
		c.propagator = xtraceid.New()
	}
	s.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans),
		sdktrace.WithSampler(c.sampler), sdktrace.WithIDGenerator(idgen.New()))
	t.Cleanup(func() {
		if err := s.provider.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	h = otelhttp.NewHandler(xtraceid.ResponseHandler(h), "server", append(c.options,
		otelhttp.WithTracerProvider(s.provider), otelhttp.WithPropagators(c.propagator))...)
	if c.outside != nil {
		h = c.outside(h)
	}
	s.Server = httptest.NewUnstartedServer(h)
	if c.setup == nil {
		c.setup = (*httptest.Server).Start
	}
	c.setup(s.Server)
	t.Cleanup(s.Close)
	s.Client().Timeout = 30 * time.Second // a broken stream fails instead of hanging
	s.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// client returns an HTTP client with otelhttp's transport and this service's SDK.
func (s *service) client(p propagation.TextMapPropagator) *http.Client {
	return &http.Client{Transport: otelhttp.NewTransport(s.Client().Transport,
		otelhttp.WithTracerProvider(s.provider), otelhttp.WithPropagators(p))}
}

// ended waits for n spans. The server's span ends after the client has received the response.
func (s *service) ended(t *testing.T, n int) []sdktrace.ReadOnlySpan {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if spans := s.spans.Ended(); len(spans) == n {
			return spans
		} else if len(spans) > n || time.Now().After(deadline) {
			t.Fatalf("%d spans have ended, want %d", len(spans), n)
		}
	}
}

// get sends a request without an SDK, as a foreign client does. It reads the whole body.
func get(t *testing.T, c *http.Client, url string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}
