package xtraceid_test

import (
	"context"
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

const expose = "Access-Control-Expose-Headers"

// respond serves one request with the span context in its context and returns the response's
// headers.
func respond(sc trace.SpanContext, h http.Handler) http.Header {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r = r.WithContext(trace.ContextWithSpanContext(context.Background(), sc))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Header()
}

func TestResponseHandler(t *testing.T) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	span := spanContext(t, traceT, spanS, true).WithRemote(false)
	span = span.WithTraceFlags(span.TraceFlags() | trace.FlagsRandom)
	idOnly := spanContext(t, traceT, "", false)
	timed := []xtraceid.ResponseOption{xtraceid.WithServerTiming()}
	const timing = `traceparent;desc="00-` + traceT + "-" + spanS + `-03"`
	for _, c := range []struct {
		name string
		sc   trace.SpanContext
		opts []xtraceid.ResponseOption
		want http.Header
	}{
		{"span", span, nil, http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id"}}},
		{"trace ID only", idOnly, nil, http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id"}}},
		{"no span", trace.SpanContext{}, timed, http.Header{}},
		{"timing", span, timed, http.Header{"X-Trace-Id": {traceT}, "Server-Timing": {timing}, expose: {"x-trace-id", "Server-Timing"}}},
		{"timing, trace ID only", idOnly, timed, http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id"}}},
	} {
		if got := respond(c.sc, xtraceid.ResponseHandler(nothing, c.opts...)); !maps.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Headers that outer handlers have set and headers that the inner handler sets.
func TestResponseHandlerOtherHeaders(t *testing.T) {
	sc := spanContext(t, traceT, spanS, true)
	set := func(next http.Handler, name, value string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(name, value)
			next.ServeHTTP(w, r)
		})
	}
	end := http.NotFoundHandler()
	for _, c := range []struct {
		name    string
		handler http.Handler
		header  string
		want    []string
	}{
		{"CORS outside", set(xtraceid.ResponseHandler(end), expose, "ETag"), expose, []string{"ETag", "x-trace-id"}},
		{"CORS inside", xtraceid.ResponseHandler(set(end, expose, "ETag")), expose, []string{"ETag", "x-trace-id"}},
		{"CORS inside, with the header", xtraceid.ResponseHandler(set(end, expose, "X-Trace-ID")), expose, []string{"x-trace-id"}},
		{"an ID set inside", xtraceid.ResponseHandler(set(end, "x-trace-id", traceU)), "X-Trace-Id", []string{traceT}},
		{"an ID set outside", set(xtraceid.ResponseHandler(end), "x-trace-id", traceU), "X-Trace-Id", []string{traceT}},
		{"timing set outside", set(xtraceid.ResponseHandler(end, xtraceid.WithServerTiming()), "Server-Timing", "db;dur=5"), "Server-Timing",
			[]string{"db;dur=5", `traceparent;desc="00-` + traceT + "-" + spanS + `-01"`}},
		{"two handlers", xtraceid.ResponseHandler(xtraceid.ResponseHandler(end)), "X-Trace-Id", []string{traceT}},
	} {
		if got := respond(sc, c.handler).Values(c.header); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A reverse proxy adds the headers of the upstream response, which has its own ID: those of the
// span here win, whatever kind of response it is.
func TestResponseHandlerProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-trace-id", traceU)
		w.Header().Set(expose, "x-trace-id")
		w.Header().Add("Server-Timing", `traceparent;desc="00-`+traceU+"-"+spanP+`-01"`)
		w.Header().Add("Server-Timing", "db;dur=5")
		switch r.URL.Path {
		case "/hints":
			w.WriteHeader(http.StatusEarlyHints)
		case "/stream":
			w.(http.Flusher).Flush()
		case "/upgrade":
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Trace-Id: %s\r\n\r\n", traceU)
			_ = rw.Flush()
			_, _ = io.CopyN(conn, rw, 5)
			return
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := xtraceid.ResponseHandler(httputil.NewSingleHostReverseProxy(to), xtraceid.WithServerTiming())
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r.WithContext(trace.ContextWithSpanContext(r.Context(), spanContext(t, traceT, spanS, true))))
	}))
	defer here.Close()
	want := http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id", "Server-Timing"},
		"Server-Timing": {"db;dur=5", `traceparent;desc="00-` + traceT + "-" + spanS + `-01"`}}
	check := func(path string, status int, got http.Header) {
		for name, values := range want {
			if !slices.Equal(got.Values(name), values) && status != http.StatusSwitchingProtocols || len(got.Values("X-Trace-Id")) != 1 {
				t.Errorf("%s, %d: %s is %q, want %q", path, status, name, got.Values(name), values)
			}
		}
		if got.Get("X-Trace-Id") != traceT {
			t.Errorf("%s, %d: x-trace-id %q", path, status, got.Values("X-Trace-Id"))
		}
	}
	for _, path := range []string{"/", "/hints", "/stream", "/upgrade"} {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
				check(path, code, http.Header(header))
				return nil
			},
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, here.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if path == "/upgrade" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "echo")
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		check(path, resp.StatusCode, resp.Header)
		if up, ok := resp.Body.(io.Writer); ok {
			_, _ = io.WriteString(up, "hello")
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "hello" {
			t.Errorf("%s: %q, %v", path, body, err)
		}
		resp.Body.Close()
	}
}

// The handler's writer has the features of the server's, with the headers already set.
func TestResponseHandlerWriter(t *testing.T) {
	var id string
	h := xtraceid.ResponseHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		id = w.Header().Get("x-trace-id")
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("ResponseController: %v", err)
		}
		if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("hel")); n != 3 || err != nil {
			t.Errorf("ReadFrom: %d, %v", n, err)
		}
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "lo")
	}))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(trace.ContextWithSpanContext(r.Context(), spanContext(t, traceT, spanS, true))))
	}))
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "hello" || resp.Header.Get("x-trace-id") != traceT || id != traceT {
		t.Errorf("%q, %v, x-trace-id %q, inside %q", body, err, resp.Header.Get("x-trace-id"), id)
	}
}
