package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// logTracing is the handler of traceid's example for logs.
type logTracing struct{ slog.Handler }

func (h logTracing) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		r.AddAttrs(slog.Any("trace_id", sc.TraceID()), slog.Any("span_id", sc.SpanID()))
	}
	return h.Handler.Handle(ctx, r)
}

// Log records of a request have the trace ID of its response.
func TestLogs(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logTracing{slog.NewJSONHandler(&out, nil)})
	s := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		log.InfoContext(r.Context(), "order placed")
	}), serviceConfig{})
	resp := get(t, s.Client(), s.URL)
	sc := s.ended(t, 1)[0].SpanContext()
	s.Close()
	var record struct {
		TraceID string `json:"trace_id"`
		SpanID  string `json:"span_id"`
	}
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if record.TraceID != resp.Header.Get("x-trace-id") || record.TraceID != sc.TraceID().String() || record.SpanID != sc.SpanID().String() {
		t.Errorf("logged %+v, the response has %q, the span is %s", record, resp.Header.Get("x-trace-id"), sc.SpanID())
	}
}
