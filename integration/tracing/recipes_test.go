package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/setup"
)

// TestRecipes checks that the Go code of these pages, except for some pieces, is code that is
// compiled and run: here or in the propagator's examples.
func TestRecipes(t *testing.T) {
	indent := regexp.MustCompile(`(?m)^\s+`)
	var sources strings.Builder
	for _, path := range []string{"recipes_test.go", "grpc_test.go", "hops_test.go", "../../propagation/xtraceid/example_test.go"} {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources.WriteString(indent.ReplaceAllString(string(source), ""))
	}
	for page, untested := range map[string]int{"recipes": 0, "clones": 0, "migrating": 0} {
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

// traced adds the IDs of the context's span to records, outside of all groups.
type traced struct {
	slog.Handler
	groups func(slog.Handler) slog.Handler // adds the groups and what is in them; nil without one
}

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	handler := h.Handler
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		handler = handler.WithAttrs([]slog.Attr{slog.Any("trace_id", sc.TraceID()), slog.Any("span_id", sc.SpanID())})
	}
	if h.groups != nil {
		handler = h.groups(handler)
	}
	return handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	if h.groups == nil {
		return traced{Handler: h.Handler.WithAttrs(attrs)}
	}
	return traced{h.Handler, func(to slog.Handler) slog.Handler { return h.groups(to).WithAttrs(attrs) }}
}

func (h traced) WithGroup(name string) slog.Handler {
	return traced{h.Handler, func(to slog.Handler) slog.Handler {
		if h.groups != nil {
			to = h.groups(to)
		}
		return to.WithGroup(name)
	}}
}

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
	slog.SetDefault(slog.New(traced{Handler: slog.NewJSONHandler(os.Stderr, nil)}))
	var out bytes.Buffer
	std := slog.New(traced{Handler: slog.NewJSONHandler(&out, nil)}).With("service", "shop")
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(&out), zap.InfoLevel))
	s := startService(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		std.InfoContext(r.Context(), "order placed")
		std.WithGroup("order").With("id", 7).WithGroup("sum").InfoContext(r.Context(), "order placed", "euros", 9)
		withTrace(r.Context(), log).Info("order placed")
	}), serviceConfig{})
	resp := get(t, s.Client(), s.URL)
	sc := s.ended(t, 1)[0].SpanContext()
	s.Close()
	records := json.NewDecoder(&out)
	for _, library := range []string{"slog", "slog, in groups", "zap"} {
		var record struct {
			TraceID string `json:"trace_id"`
			SpanID  string `json:"span_id"`
			Order   struct {
				ID  int
				Sum struct{ Euros int }
			}
		}
		if err := records.Decode(&record); err != nil {
			t.Fatalf("%s: %v", library, err)
		}
		if grouped := record.Order.ID == 7 && record.Order.Sum.Euros == 9; grouped != (library == "slog, in groups") {
			t.Errorf("%s: logged %+v", library, record)
		}
		if record.TraceID != resp.Header.Get("x-trace-id") || record.TraceID != sc.TraceID().String() || record.SpanID != sc.SpanID().String() {
			t.Errorf("%s: logged %+v, the response has %q, the span is %s", library, record, resp.Header.Get("x-trace-id"), sc.SpanID())
		}
	}
}

// The hook that a platform calls after a restore discards the lease: the file was copied, too, and
// is refused from then on.
func TestRestoredHook(t *testing.T) {
	ids, err := setup.Config{Store: "bolt:" + filepath.Join(t.TempDir(), "leases.db")}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ids.Shutdown(t.Context()) }()
	mux := http.NewServeMux()
	restored := func(http.ResponseWriter, *http.Request) { ids.Restored() }
	mux.HandleFunc("POST /aws/lambda-microvms/runtime/v1/run", restored) // Lambda MicroVMs
	mux.HandleFunc("POST /restored", restored)                           // others
	server := httptest.NewServer(mux)
	defer server.Close()
	for i, path := range []string{"", "/aws/lambda-microvms/runtime/v1/run", "/restored"} {
		if path != "" {
			resp, err := http.Post(server.URL+path, "", nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", resp, err)
			}
			resp.Body.Close()
		}
		ids.NewIDs(t.Context())
		if got := ids.Fallbacks(); got != int64(i) {
			t.Errorf("after %q: %d random IDs, want %d", path, got, i)
		}
	}
}

// A problem is logged at a level that says whether somebody has to act; setup tests the others.
func TestErrorLevels(t *testing.T) {
	otelHandler, logger := otel.GetErrorHandler(), slog.Default()
	t.Cleanup(func() { otel.SetErrorHandler(otelHandler); slog.SetDefault(logger) })
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		slog.Log(context.Background(), setup.Level(err), "opentelemetry", "error", err)
	}))
	otel.Handle(lease.ErrNoStore)
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, lease.ErrNoStore.Error()) {
		t.Errorf("logged %s", text)
	}
}
