package xtraceid_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

const (
	expose = "Access-Control-Expose-Headers"
	timing = "Server-Timing"
)

// inSpan calls a handler in the span sc.
func inSpan(sc trace.SpanContext, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(trace.ContextWithSpanContext(r.Context(), sc)))
	})
}

// The headers, together with those that outer and inner handlers set.
func TestResponseHandler(t *testing.T) {
	span := spanContext(t, traceT, spanS, true).WithRemote(false)
	random := span.WithTraceFlags(span.TraceFlags() | 2)
	idOnly := spanContext(t, traceT, "", false)
	of := func(sc trace.SpanContext) string {
		return fmt.Sprintf(`traceparent;desc="00-%s-%s-%s"`, sc.TraceID(), sc.SpanID(),
			sc.TraceFlags())
	}
	set := func(next http.Handler, name, value string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add(name, value)
			next.ServeHTTP(w, r)
		})
	}
	end := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") })
	recovers := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { _ = recover() }()
			h.ServeHTTP(w, r)
		})
	}
	plain := func(h http.Handler) http.Handler { return xtraceid.ResponseHandler(h, nil) }
	timed := func(h http.Handler) http.Handler {
		return xtraceid.ResponseHandler(h, xtraceid.WithServerTiming())
	}
	// A handler for CORS uses the same slice for all responses.
	shared := []string{"x-trace-id", "X-Other-Header"}
	ids, exposed := []string{traceT}, []string{"x-trace-id"}
	for _, c := range []struct {
		name    string
		sc      trace.SpanContext
		handler http.Handler
		want    http.Header
	}{
		{"span", span, plain(end), http.Header{"X-Trace-Id": ids, expose: exposed}},
		{"no span", trace.SpanContext{}, timed(end), http.Header{}},
		{"timing", random, timed(end), http.Header{"X-Trace-Id": ids, timing: {of(random)},
			expose: {"x-trace-id", timing}}},
		{"timing, trace ID only", idOnly, timed(end),
			http.Header{"X-Trace-Id": ids, expose: exposed}},
		{"CORS inside", span, plain(set(end, expose, "X-Other-Header")),
			http.Header{"X-Trace-Id": ids, expose: {"X-Other-Header", "x-trace-id"}}},
		{"CORS inside, with the header", span, plain(set(end, expose, "X-Trace-ID")),
			http.Header{"X-Trace-Id": ids, expose: exposed}},
		{"CORS inside, a list", span, plain(set(end, expose, "X-Trace-ID, X-Other-Header")),
			http.Header{"X-Trace-Id": ids, expose: {"X-Trace-ID, X-Other-Header", "x-trace-id"}}},
		{"CORS inside, shared", span, timed(http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { w.Header()[expose] = shared[:1] })),
			http.Header{"X-Trace-Id": ids, timing: {of(span)}, expose: {"x-trace-id", timing}}},
		{"an ID set inside", span, plain(set(end, "x-trace-id", traceU)),
			http.Header{"X-Trace-Id": ids, expose: exposed}},
		{"a list of timings set outside", span, set(timed(end), timing, "traceparent;dur=5, db"),
			http.Header{"X-Trace-Id": ids, timing: {"traceparent;dur=5, db", of(span)},
				expose: {"x-trace-id", timing}}},
		{"a panic", span, recovers(plain(panics)), http.Header{"X-Trace-Id": ids, expose: exposed}},
		{"another header", span, xtraceid.ResponseHandler(end, xtraceid.WithHeader("request-no")),
			http.Header{"Request-No": ids, expose: {"request-no"}}},
		{"set at once", span, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			xtraceid.SetResponseHeaders(r.Context(), w.Header(), xtraceid.WithServerTiming())
		}), http.Header{"X-Trace-Id": ids, timing: {of(span)}, expose: {"x-trace-id", timing}}},
		{"two handlers", span, timed(timed(end)),
			http.Header{"X-Trace-Id": ids, timing: {of(span)}, expose: {"x-trace-id", timing}}},
	} {
		w := httptest.NewRecorder()
		inSpan(c.sc, c.handler).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		if got := w.Header(); !maps.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if shared[1] != "X-Other-Header" {
		t.Errorf("the handler's slice is now %q", shared)
	}
}

// flusher is a writer whose Flush fails.
type flusher struct{ http.ResponseWriter }

func (flusher) Flush() {}

func (flusher) FlushError() error { return io.ErrClosedPipe }

// unwrapped is a writer of a middleware that flushes only by an [http.ResponseController].
type unwrapped struct{ http.ResponseWriter }

func (w unwrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A handler learns that a flush has failed, or that the server's writer has none. The header is
// sent even if the flush passes this package's writer by.
func TestResponseFlushErrors(t *testing.T) {
	for _, c := range []struct {
		writer http.ResponseWriter
		want   error
	}{
		{flusher{httptest.NewRecorder()}, io.ErrClosedPipe},
		{discard{httptest.NewRecorder()}, http.ErrNotSupported},
		{unwrapped{httptest.NewRecorder()}, nil},
	} {
		flush := func(w http.ResponseWriter, _ *http.Request) {
			err := http.NewResponseController(w).Flush()
			if id := c.writer.Header().Get("x-trace-id"); !errors.Is(err, c.want) || id != traceT {
				t.Errorf("%v, want %v; x-trace-id %q", err, c.want, id)
			}
		}
		inSpan(spanContext(t, traceT, spanS, true), xtraceid.ResponseHandler(
			http.HandlerFunc(flush))).ServeHTTP(c.writer, httptest.NewRequest("GET", "/", nil))
	}
}

// However a response begins, it has the span's ID, not that which the handler has set; what the
// handler sets afterwards is a trailer's value. Its writer has the features of the server's.
func TestResponseBegins(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"hints":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) },
		"flush":  func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"file": func(w http.ResponseWriter) {
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("hel"))
		},
		"text":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "hel") },
		"write": func(w http.ResponseWriter) { _, _ = w.Write([]byte("hel")) },
	} {
		handler := xtraceid.ResponseHandler(http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) {
				c := http.NewResponseController(w)
				if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Errorf("ResponseController: %v", err)
				}
				end := func(w http.ResponseWriter) { _, _ = w.Write([]byte("lo")) }
				for _, f := range []func(w http.ResponseWriter){begin, end} {
					w.Header().Set("x-trace-id", traceU)
					f(w)
				}
			}))
		var after string
		s := httptest.NewServer(inSpan(spanContext(t, traceT, spanS, true), http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				handler.ServeHTTP(w, r)
				after = w.Header().Get("x-trace-id")
			})))
		hints := http.Header{"X-Trace-Id": {traceT}}
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
				hints = http.Header(h)
				return nil
			},
		})
		resp := get(ctx, t, s.URL, nil)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		s.Close()
		begun := name != "hints" // before end
		if err != nil || !strings.HasSuffix(string(body), "lo") ||
			(resp.StatusCode == http.StatusAccepted) != (name == "status") ||
			resp.Header.Get("x-trace-id") != traceT || hints.Get("x-trace-id") != traceT ||
			begun != (after == traceU) {
			t.Errorf("%s: %s %q, %v: %v, hints %v, then %s", name, resp.Status, body, err,
				resp.Header, hints, after)
		}
	}
}

// get returns the response to a request with headers.
func get(ctx context.Context, t *testing.T, url string, h http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = h
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// upstream is a service behind a reverse proxy.
type upstream http.Response

func (u *upstream) RoundTrip(*http.Request) (*http.Response, error) {
	return (*http.Response)(u), nil
}

// A reverse proxy adds the headers of the upstream response, which has its own ID: those of the
// span here win, even if the upstream service changes the protocol.
func TestResponseHandlerProxy(t *testing.T) {
	service, end := net.Pipe()
	defer end.Close()
	proxy := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {},
		Transport: &upstream{StatusCode: http.StatusSwitchingProtocols, Body: service,
			Header: headers("Connection", "Upgrade", "Upgrade", "echo", "X-Trace-Id", traceU,
				expose, "x-trace-id", timing, "db;dur=5")}}
	here := httptest.NewServer(inSpan(spanContext(t, traceT, spanS, true),
		xtraceid.ResponseHandler(proxy, xtraceid.WithServerTiming())))
	defer here.Close()
	resp := get(t.Context(), t, here.URL, headers("Connection", "Upgrade", "Upgrade", "echo"))
	defer resp.Body.Close()
	wants := http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id", timing},
		timing: {"db;dur=5", `traceparent;desc="00-` + traceT + "-" + spanS + `-01"`}}
	for name, want := range wants {
		if got := resp.Header[name]; !slices.Equal(got, want) {
			t.Errorf("%s: %s is %q, want %q", resp.Status, name, got, want)
		}
	}
}
