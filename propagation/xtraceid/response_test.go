package xtraceid_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

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
	type opts = []xtraceid.ResponseOption
	timed, hidden := xtraceid.WithServerTiming(), xtraceid.WithExpose(false)
	const timing = `traceparent;desc="00-` + traceT + "-" + spanS + `-03"`
	for _, c := range []struct {
		name string
		sc   trace.SpanContext
		opts opts
		want http.Header
	}{
		{"span", span, nil, http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id"}}},
		{"trace ID only", idOnly, nil, http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id"}}},
		{"no span", trace.SpanContext{}, opts{timed}, http.Header{}},
		{"header name", span, opts{xtraceid.WithResponseHeader("trace")}, http.Header{"Trace": {traceT}, expose: {"trace"}}},
		{"bad header name, reported", span, opts{xtraceid.WithResponseHeader("x: y\r\nz")}, http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id"}}},
		{"not exposed", span, opts{hidden}, http.Header{"X-Trace-Id": {traceT}}},
		{"exposed", span, opts{hidden, xtraceid.WithExpose(true)}, http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id"}}},
		{"timing", span, opts{timed}, http.Header{"X-Trace-Id": {traceT}, "Server-Timing": {timing}, expose: {"x-trace-id", "Server-Timing"}}},
		{"timing, not exposed", span, opts{timed, hidden}, http.Header{"X-Trace-Id": {traceT}, "Server-Timing": {timing}}},
		{"timing, trace ID only", idOnly, opts{timed}, http.Header{"X-Trace-Id": {traceT}, expose: {"x-trace-id"}}},
	} {
		reported := reports(t)
		got := respond(c.sc, xtraceid.ResponseHandler(nothing, c.opts...))
		if !maps.EqualFunc(got, c.want, slices.Equal) || (*reported != nil) != strings.HasSuffix(c.name, "reported") {
			t.Errorf("%s: %v, want %v; reported %v", c.name, got, c.want, *reported)
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
		{"CORS inside", xtraceid.ResponseHandler(set(end, expose, "ETag")), expose, []string{"ETag"}},
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

// The handler gets the server's own writer, with all of its features and with the headers:
// whatever it does, also streaming or hijacking the connection, they are sent.
func TestResponseHandlerWriter(t *testing.T) {
	var inside http.ResponseWriter
	id := ""
	h := xtraceid.ResponseHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		inside, id = w, w.Header().Get("x-trace-id")
	}))
	server := httptest.NewRecorder()
	ctx := trace.ContextWithSpanContext(t.Context(), spanContext(t, traceT, spanS, true))
	h.ServeHTTP(server, new(http.Request).WithContext(ctx))
	if inside != server || id != traceT {
		t.Errorf("the handler got %T with x-trace-id %q, want the server's %T with %s", inside, id, server, traceT)
	}
}
