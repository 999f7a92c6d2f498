package tracing

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/fleet"
)

// TestRecipes checks that the Go code of these pages is compiled and run: here or in the
// propagator's examples.
func TestRecipes(t *testing.T) {
	indent := regexp.MustCompile(`(?m)^\s+`)
	var sources string
	for _, path := range []string{"integration/tracing/recipes_test.go",
		"integration/tracing/grpc_test.go", "integration/tracing/hops_test.go",
		"integration/tracing/tracing_test.go", "integration/tracing/frameworks_test.go",
		"propagation/xtraceid/example_test.go"} {
		sources += indent.ReplaceAllString(child.Read(t, path), "")
	}
	for _, page := range []string{"recipes", "generator", "migrating-b3", "security", "headers"} {
		blocks := child.Blocks(child.Read(t, "docs/"+page+".md"), "go")
		if len(blocks) == 0 {
			t.Errorf("%s has no code", page)
		}
		for _, block := range blocks {
			if !strings.Contains(sources, indent.ReplaceAllString(block, "")) {
				t.Errorf("%s: no test has\n%s", page, block)
			}
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
		handler = handler.WithAttrs([]slog.Attr{
			slog.Any("trace_id", sc.TraceID()), slog.Any("span_id", sc.SpanID()),
		})
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
	return traced{h.Handler, func(to slog.Handler) slog.Handler {
		return h.groups(to).WithAttrs(attrs)
	}}
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

// Log records have the IDs of the context's span, outside of all groups. A problem is logged at a
// level that says whether somebody has to act; setup tests the others.
func TestLogs(t *testing.T) {
	handler, logger := otel.GetErrorHandler(), slog.Default()
	defer func() { otel.SetErrorHandler(handler); slog.SetDefault(logger) }()
	slog.SetDefault(slog.New(traced{Handler: slog.NewJSONHandler(os.Stderr, nil)}))
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "request")
	defer span.End()
	ids := fmt.Sprintf(`"trace_id":"%s","span_id":"%s"`, span.SpanContext().TraceID(),
		span.SpanContext().SpanID())
	var out bytes.Buffer
	std := slog.New(traced{Handler: slog.NewJSONHandler(&out, nil)}).With("service", "shop")
	grouped := std.WithGroup("order").With("id", 7).WithGroup("sum")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		slog.Log(context.Background(), fleet.Level(err), "opentelemetry", "error", err)
	}))
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}),
		zapcore.AddSync(&out), zap.InfoLevel))
	for want, write := range map[string]func(){
		`"service":"shop",` + ids + "}": func() { std.InfoContext(ctx, "order placed") },
		`"service":"shop",` + ids + `,"order":{"id":7,"sum":{"euros":9}}}`: func() {
			grouped.InfoContext(ctx, "order placed", "euros", 9)
		},
		`"service":"shop"}`: func() { std.Info("order placed") },
		"{" + ids + "}":     func() { withTrace(ctx, log).Info("") },
		`"level":"ERROR","msg":"opentelemetry","error":"` + lease.ErrNoStore.Error() +
			`"}`: func() {
			slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
			otel.Handle(lease.ErrNoStore)
		},
	} {
		out.Reset()
		if write(); !strings.HasSuffix(out.String(), want+"\n") {
			t.Errorf("logged %s, want %s", &out, want)
		}
	}
}

// The hook that a platform calls after a restore discards the lease: the file was copied, too, and
// is refused from then on.
func TestRestoredHook(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leases")
	ids, err := fleet.Config{Store: "file:" + file}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ids.Shutdown(t.Context()) }()
	mux := http.NewServeMux()
	restored := func(http.ResponseWriter, *http.Request) { ids.OnRestore() }
	mux.HandleFunc("POST /aws/lambda-microvms/runtime/v1/run", restored)
	mux.HandleFunc("POST /restored", restored)
	server := httptest.NewServer(mux)
	defer server.Close()
	ids.NewIDs(t.Context()) // with the lease
	resp, err := http.Post(server.URL+"/restored", "", nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	ids.NewIDs(t.Context())
	if got := ids.Fallbacks(); got != 1 {
		t.Errorf("%d random IDs, want 1", got)
	}
}
