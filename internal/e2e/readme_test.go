package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// quickStart is the README's, to the letter.
func quickStart(exporter sdktrace.SpanExporter) (*sdktrace.TracerProvider, http.Handler) {
	// README
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithIDGenerator(idgen.New()),
	)
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(xtraceid.New())

	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	handler := otelhttp.NewHandler(xtraceid.ResponseHandler(hello), "hello")
	// end
	return provider, handler
}

func Example_quickStart() {
	exporter := tracetest.NewInMemoryExporter()
	provider, handler := quickStart(exporter)

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if err := provider.ForceFlush(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(w.Header().Get("x-trace-id") == exporter.GetSpans()[0].SpanContext.TraceID().String())
	// Output: true
}

func TestQuickStartIsTheReadmes(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(self), "\t// README\n")
	code, _, _ = strings.Cut(code, "\t// end\n")
	code = strings.TrimPrefix(strings.ReplaceAll(code, "\n\t", "\n"), "\t")
	if code == "" || !strings.Contains(string(readme), "```go\n"+code+"```\n") {
		t.Errorf("the README's quick start is not this:\n%s", code)
	}
}
