package xtraceid_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// A request costs few allocations.
func TestAllocations(t *testing.T) {
	p := xtraceid.New()
	in := propagation.HeaderCarrier(headers(append(multi(traceT, spanS, "1"), "x-trace-id",
		traceT)...))
	none := propagation.HeaderCarrier(headers("Accept", "text/html", "User-Agent", "test"))
	ctx := local(t, traceT, spanS, true)
	out := propagation.HeaderCarrier{}
	response := httptest.NewRecorder()
	empty := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	handler := xtraceid.ResponseHandler(http.HandlerFunc(empty))
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	extract := 2.0
	if strings.HasPrefix(otel.Version(), "1.32.") {
		extract = 6 // trace.TraceIDFromHex and SpanIDFromHex allocated in the oldest version
	}
	for _, c := range []struct {
		name string
		most float64
		do   func()
	}{
		{"extract", extract, func() { p.Extract(context.Background(), in) }},
		{"extract without headers", 0, func() { p.Extract(context.Background(), none) }},
		{"inject", 3, func() { p.Inject(ctx, out) }},
		{"response", 19, func() {
			clear(response.Header())
			handler.ServeHTTP(discard{response}, request)
		}},
	} {
		if got := testing.AllocsPerRun(100, c.do); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.name, got, c.most)
		} else {
			t.Logf("%s: %v allocations", c.name, got)
		}
	}
}

// discard keeps only the headers of a response.
type discard struct{ http.ResponseWriter }

func (discard) WriteHeader(int) {}
