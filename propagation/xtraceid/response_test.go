package xtraceid_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
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
}

// A handler for CORS uses the same slice for all responses.
func TestResponseHandlerSharesHeaders(t *testing.T) {
	shared := []string{"x-trace-id", "X-Other-Header"}[:1]
	handler := xtraceid.ResponseHandler(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.Header()[expose] = shared }),
		xtraceid.WithServerTiming())
	for range 2 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		inSpan(spanContext(t, traceT, spanS, true), handler).ServeHTTP(w, r)
		got, want := w.Header()[expose], []string{"x-trace-id", timing}
		if all := shared[:2]; !slices.Equal(got, want) || all[0] != want[0] || all[1] == timing {
			t.Errorf("exposed %q, want %q; the handler's slice is %q", got, want, all)
		}
	}
}

// What a handler sets after the response has begun is a trailer's value.
func TestResponseHandlerTrailer(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.Header().Set("X-Trace-Id", traceU)
		_, _ = io.WriteString(w, "hello")
	})
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	span := spanContext(t, traceT, spanS, true)
	inSpan(span, xtraceid.ResponseHandler(handler)).ServeHTTP(w, r)
	response := w.Result()
	_ = response.Body.Close()
	header, after := response.Header.Get("x-trace-id"), w.Header().Get("x-trace-id")
	if header != traceT || after != traceU {
		t.Errorf("the header has %s, the handler set %s, which became %s", header, traceU, after)
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

// However a response begins, it has the span's ID, not that which the handler has set. The
// handler's writer has the features of the server's.
func TestResponseBegins(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"hints":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) },
		"flush":  func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"file": func(w http.ResponseWriter) {
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("hel"))
		},
		"write": func(http.ResponseWriter) {},
	} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c := http.NewResponseController(w)
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Errorf("ResponseController: %v", err)
			}
			end := func(w http.ResponseWriter) { _, _ = w.Write([]byte("lo")) }
			for _, f := range []func(w http.ResponseWriter){begin, end} {
				w.Header().Set("x-trace-id", traceU)
				f(w)
			}
		})
		s := httptest.NewServer(inSpan(spanContext(t, traceT, spanS, true),
			xtraceid.ResponseHandler(handler)))
		check := func(header map[string][]string) {
			if got := header["X-Trace-Id"]; !slices.Equal(got, []string{traceT}) {
				t.Errorf("%s: x-trace-id %q", name, got)
			}
		}
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { check(h); return nil },
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		check(resp.Header)
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.HasSuffix(string(body), "lo") ||
			(resp.StatusCode == http.StatusAccepted) != (name == "status") {
			t.Errorf("%s: %s %q, %v", name, resp.Status, body, err)
		}
		resp.Body.Close()
		s.Close()
	}
}

// A reverse proxy adds the headers of the upstream response, which has its own ID: those of the
// span here win, even if the upstream service changes the protocol.
func TestResponseHandlerProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw,
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"+
				"X-Trace-Id: %s\r\n%s: x-trace-id\r\n%s: db;dur=5\r\n\r\n", traceU, expose, timing)
		_ = rw.Flush()
		_, _ = io.CopyN(conn, rw, 5)
	}))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := xtraceid.ResponseHandler(httputil.NewSingleHostReverseProxy(to),
		xtraceid.WithServerTiming())
	here := httptest.NewServer(inSpan(spanContext(t, traceT, spanS, true), proxy))
	defer here.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, here.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = headers("Connection", "Upgrade", "Upgrade", "echo")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	wants := http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id", timing},
		timing: {"db;dur=5", `traceparent;desc="00-` + traceT + "-" + spanS + `-01"`}}
	for name, want := range wants {
		if got := resp.Header[name]; !slices.Equal(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	_, _ = io.WriteString(resp.Body.(io.Writer), "hello")
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "hello" {
		t.Errorf("%s: %q, %v", resp.Status, body, err)
	}
}
