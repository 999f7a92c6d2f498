package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TestRecipes checks that the Go code of these pages, except for some pieces, is code that is
// compiled and run: here or in the propagator's examples.
func TestRecipes(t *testing.T) {
	indent := regexp.MustCompile(`(?m)^\s+`)
	var sources strings.Builder
	for _, path := range []string{"recipes_test.go", "grpc_test.go", "hops_test.go", "edge_test.go", "../../propagation/xtraceid/example_test.go"} {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources.WriteString(indent.ReplaceAllString(string(source), ""))
	}
	for page, untested := range map[string]int{"recipes": 0, "migrating": 2} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		tested := 0
		var missing []string
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(sources.String(), indent.ReplaceAllString(block[1], "")) {
				tested++
			} else {
				missing = append(missing, block[1])
			}
		}
		if tested == 0 || len(missing) != untested {
			t.Errorf("%s: %d pieces of code are in a test; these are in none, want %d:\n%s", page, tested, untested, strings.Join(missing, "\n"))
		}
	}
}

type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		r.AddAttrs(slog.Any("trace_id", sc.TraceID()), slog.Any("span_id", sc.SpanID()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }

func withTrace(ctx context.Context, log *zap.Logger) *zap.Logger {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.HasTraceID() {
		return log
	}
	return log.With(zap.Stringer("trace_id", sc.TraceID()), zap.Stringer("span_id", sc.SpanID()))
}

// Log records of a request have the trace ID of its response.
func TestLogs(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(traced{slog.NewJSONHandler(os.Stderr, nil)}))
	var out bytes.Buffer
	std := slog.New(traced{slog.NewJSONHandler(&out, nil)}).With("service", "shop")
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(&out), zap.InfoLevel))
	s := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		std.InfoContext(r.Context(), "order placed")
		withTrace(r.Context(), log).Info("order placed")
	}), serviceConfig{})
	resp := get(t, s.Client(), s.URL)
	sc := s.ended(t, 1)[0].SpanContext()
	s.Close()
	records := json.NewDecoder(&out)
	for _, library := range []string{"slog", "zap"} {
		var record struct {
			TraceID string `json:"trace_id"`
			SpanID  string `json:"span_id"`
		}
		if err := records.Decode(&record); err != nil {
			t.Fatalf("%s: %v", library, err)
		}
		if record.TraceID != resp.Header.Get("x-trace-id") || record.TraceID != sc.TraceID().String() || record.SpanID != sc.SpanID().String() {
			t.Errorf("%s: logged %+v, the response has %q, the span is %s", library, record, resp.Header.Get("x-trace-id"), sc.SpanID())
		}
	}
}
