package collector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/rs/cors"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/propagation/xtraceid"
	"github.com/traceflake/traceflake/traceid"
)

// openBrowser starts a headless Chromium and returns its tab, at a page.
func openBrowser(t *testing.T, page string) context.Context {
	t.Helper()
	ctx, cancel := chromedp.NewExecAllocator(t.Context(),
		append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
			chromedp.WSURLReadTimeout(10*time.Minute), // the start of a slow machine
			chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-component-update", true))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	err := chromedp.Do(ctx, chromedp.Navigate(page))
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		t.Skip("Chromium is not on the PATH (Debian: apt-get install chromium)")
	} else if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// value evaluates a script in the browser.
func value[T any](t *testing.T, tab context.Context, script string) T {
	t.Helper()
	v, err := chromedp.Run(tab, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// load loads a module of the JavaScript client into the browser.
func load(t *testing.T, tab context.Context, module string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node_modules/.bin/esbuild", module, "--bundle",
		"--format=iife", "--log-level=error")
	cmd.Dir = "../../clients/js"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v (`make js` installs what it needs)\n%s", cmd, err, out)
	}
	value[bool](t, tab, string(out)+"; true")
}

// wire is an OTLP client that passes spans to the Collector's exporter.
type wire struct{ exporter.Traces }

func (wire) Start(context.Context) error { return nil }
func (wire) Stop(context.Context) error  { return nil }

func (w wire) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	message, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(message)
	if err != nil {
		return err
	}
	return w.ConsumeTraces(ctx, traces)
}

// startEdge starts a service whose spans are stored when it has answered. Scripts of any origin may
// call it with the headers that docs/other-languages.md lists.
func startEdge(t *testing.T) (url string) {
	t.Helper()
	otlp, err := otlptrace.New(t.Context(), wire{collector(t, examples+"owned.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(idgen.New()),
		sdktrace.WithSyncer(otlp),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "edge"))))
	propagator := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{},
		propagation.Baggage{}, xtraceid.New())
	handler := otelhttp.NewHandler(xtraceid.ResponseHandler(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) {})), "edge",
		otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagator))
	mux := http.NewServeMux() // another test may still look for a server that had this port
	_, headers, _ := strings.Cut(
		child.Blocks(child.Read(t, "docs/other-languages.md"), "http")[0],
		"Access-Control-Allow-Headers: ")
	headers, _, _ = strings.Cut(headers, "\n")
	allowed := cors.New(cors.Options{AllowedHeaders: strings.Split(headers, ", ")})
	mux.Handle("/api/edge", allowed.Handler(handler))
	edge := httptest.NewServer(mux)
	t.Cleanup(edge.Close)
	return edge.URL + "/api/edge"
}

// checkPage checks that the script of the client's README traces a page's own requests.
func checkPage(t *testing.T, tab context.Context, e *servers.Engine, edge string) {
	t.Helper()
	script := child.Read(t, "clients/js/test/page.js")
	if !strings.Contains(child.Read(t, "clients/js/README.md"), "```js\n"+script+"```\n") {
		t.Error("the README has another script than test/page.js")
	}
	load(t, tab, "test/page.js")
	id := value[string](t, tab,
		fmt.Sprintf("fetch(%q).then((r) => r.headers.get('x-trace-id'))", edge))
	stored := e.Rows(t, fmt.Sprintf(
		"SELECT ParentSpanId != '', traceIDIsOurs(TraceId, Timestamp, INTERVAL 1 MINUTE, "+
			"INTERVAL 1 MINUTE) FROM otel_traces WHERE TraceId = '%s'", id))
	if got := fmt.Sprint(stored); got != "[[1 1]]" {
		t.Errorf("of the page's request %s, whether it has a parent and is ordered: %s", id, got)
	}
}

// request is a JavaScript client's report of a request that it sent within a root span.
type request struct {
	Trace, Span, Child, Response string
	NotBefore                    int64
}

// The JavaScript client works with OpenTelemetry's SDK in Chromium: its vectors hold, its IDs are
// in order, and traces that begin there are found in ClickHouse.
func TestBrowser(t *testing.T) {
	page := httptest.NewServer(http.NotFoundHandler()) // of another origin than the service
	defer page.Close()
	e, tab := database(t), openBrowser(t, page.URL)
	statements, err := clickhouse.Schema{}.Statements()
	e.Run(t, statements, err)
	edge := startEdge(t)
	load(t, tab, "test/browser.js")

	vectors := child.Read(t, "testdata/format.json")
	if failed := value[string](t, tab, "client.vectors("+vectors+")"); failed != "" {
		t.Errorf("a vector that does not hold: %s", failed)
	}

	before := time.Now().Truncate(time.Millisecond)
	roots := value[[]string](t, tab, "client.roots(1000)")
	if !slices.IsSorted(roots) || len(slices.Compact(roots)) != 1000 {
		t.Error("1000 root spans are not in the order of their trace IDs")
	}
	for _, text := range []string{roots[0], roots[999]} {
		id, err := trace.TraceIDFromHex(text)
		if at := traceid.Time(id); err != nil || at.Before(before) || at.After(time.Now()) {
			t.Errorf("%s is of %s, not of this moment: %v", text, at, err)
		}
	}

	sent := value[request](t, tab, fmt.Sprintf("client.request(%q, 'none')", edge))
	if sent.Child != sent.Trace || sent.Response != sent.Trace || sent.Trace <= roots[999] {
		t.Errorf("the spans and the response disagree about the trace: %+v", sent)
	}
	header, _ := child.Get(t, edge) // its root is in Go
	// By their time, both are found together and in their order.
	stored := e.Rows(t, fmt.Sprintf(`SELECT TraceId, ParentSpanId,
		Timestamp >= fromUnixTimestamp64Milli(%d) FROM otel_traces
		WHERE TraceId BETWEEN traceIDMin(traceIDTime('%s')) AND traceIDMax(now64(3))
		ORDER BY TraceId`, sent.NotBefore, sent.Trace))
	if got, want := fmt.Sprint(stored), fmt.Sprintf("[[%s %s 1] [%s  1]]", sent.Trace, sent.Span,
		header.Get(xtraceid.DefaultHeader)); got != want {
		t.Errorf("stored traces, parents, and whether they are not before the bound: %s, want %s",
			got, want)
	}

	// Chromium refuses a request with B3, which CORS does not allow here.
	refused := value[string](t, tab,
		fmt.Sprintf("client.request(%q, 'multi').then(() => 'sent', (err) => err.message)", edge))
	if refused != "Failed to fetch" {
		t.Errorf("a request with B3: %s", refused)
	}
	checkPage(t, tab, e, edge)

	// The query of docs/other-languages.md finds the one root of edge, whose ID is ordered.
	query := child.Blocks(child.Read(t, "docs/other-languages.md"), "sql")[0]
	if got := fmt.Sprint(e.Rows(t, query)); got != "[[edge 1 1]]" {
		t.Errorf("the roots of each service, and the ordered ones: %s", got)
	}
}
