package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/propagation/xtraceid/xtraceidgrpc"
)

// TestRecipes checks that the Go code of docs/recipes.md is code that is compiled and run: here, or
// in the propagator's examples.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	indent := regexp.MustCompile(`(?m)^\s+`)
	var sources strings.Builder
	for _, path := range []string{"recipes_test.go", "../../propagation/xtraceid/example_test.go"} {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources.WriteString(indent.ReplaceAllString(string(source), ""))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 8 {
		t.Errorf("only %d pieces of code", len(blocks))
	}
	for _, block := range blocks {
		if code := indent.ReplaceAllString(block[1], ""); !strings.Contains(sources.String(), code) {
			t.Errorf("this code is in no test:\n%s", block[1])
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

// B3 without a sampling decision loses the trace with the SDK's ParentBased sampler, unless
// WithDeferredSampled is set.
func TestDeferredDecision(t *testing.T) {
	propagator := xtraceid.New(xtraceid.WithDeferredSampled())
	for want, config := range map[int]serviceConfig{
		0: {propagator: xtraceid.New(), sampler: sdktrace.ParentBased(sdktrace.AlwaysSample())},
		1: {propagator: propagator, sampler: sdktrace.ParentBased(sdktrace.AlwaysSample())},
	} {
		s := startService(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), config)
		get(t, s.Client(), s.URL, "X-B3-TraceId", traceT, "X-B3-SpanId", spanS)
		s.Close()
		if spans := s.spans.Ended(); len(spans) != want {
			t.Errorf("%d spans, want %d", len(spans), want)
		}
	}
}

// A gRPC server and its client with OpenTelemetry's globals.
func TestGRPCRecipe(t *testing.T) {
	before, beforeProvider := otel.GetTextMapPropagator(), otel.GetTracerProvider()
	defer func() {
		otel.SetTextMapPropagator(before)
		otel.SetTracerProvider(beforeProvider)
	}()
	otel.SetTextMapPropagator(xtraceid.New())
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New())))

	server := grpc.NewServer(
		grpc.StatsHandler(otelgrpc.NewServerHandler()),
		grpc.ChainUnaryInterceptor(xtraceidgrpc.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(xtraceidgrpc.StreamServerInterceptor()),
	)
	defer server.Stop()
	grpc_health_v1.RegisterHealthServer(server, healthService{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	address := listener.Addr().String()
	conn, err := grpc.NewClient(address, grpc.WithStatsHandler(otelgrpc.NewClientHandler()),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, span := otel.Tracer("test").Start(t.Context(), "call")
	defer span.End()
	var header metadata.MD
	if _, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if got := header.Get("x-trace-id"); len(got) != 1 || got[0] != span.SpanContext().TraceID().String() {
		t.Errorf("the response has %q, the trace is %s", got, span.SpanContext().TraceID())
	}
}
