package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/traceid"
)

// A service that reads W3C's headers and generates random IDs gets its traces from the gateway.
func TestGateway(t *testing.T) {
	const random, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	others := []string{
		"uber-trace-id", "x-datadog-trace-id", "x-datadog-sampling-priority",
		"x-amzn-trace-id", "x-cloud-trace-context", "sw8", "baggage",
	}
	var received http.Header
	unchanged := tracetest.NewSpanRecorder()
	service := httptest.NewServer(otelhttp.NewHandler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			received = r.Header.Clone()
			w.Header().Set("x-trace-id", random) // its own idea of the trace
		}), "service",
		otelhttp.WithTracerProvider(
			sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(unchanged))),
		otelhttp.WithPropagators(propagation.TraceContext{})))
	defer service.Close()
	backend, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	ids := idgen.New()
	ordered := traceid.NewVerifier(nil, traceid.WithPlausible(5*time.Minute))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithIDGenerator(ids), sdktrace.WithSpanProcessor(recorder))
	edge := httptest.NewServer(
		gateway(backend, ordered.Verify, otelhttp.WithTracerProvider(provider)))
	defer edge.Close()

	browser, _ := ids.NewIDs(t.Context())
	old := traceid.Max(time.Now().Add(-time.Hour)).String()
	last := ""
	for i, c := range []struct {
		name    string
		headers map[string]string
		same    string // the trace continues
		linked  string // a new trace has a link to this one
		kept    string // an attribute has this ID, which names no span
	}{
		{name: "without a trace"},
		{name: "an outsider's trace", linked: random, headers: map[string]string{
			"traceparent": "00-" + random + "-" + parent + "-01", "tracestate": "theirs=1",
		}},
		{name: "in one b3 header", linked: random, headers: map[string]string{
			"b3": random + "-" + parent + "-0",
		}},
		{name: "in several", linked: random, headers: map[string]string{
			"X-B3-TraceId": random, "X-B3-SpanId": parent, "X-B3-Sampled": "0",
			"X-B3-ParentSpanId": "e457b5a2e4d86bd1",
		}},
		{name: "with the debug flag", linked: random, headers: map[string]string{
			"X-B3-TraceId": random, "X-B3-SpanId": parent, "X-B3-Flags": "1",
		}},
		{name: "with the debug flag in one b3 header", linked: random, headers: map[string]string{
			"b3": random + "-" + parent + "-d",
		}},
		{name: "in x-trace-id alone", kept: random, headers: map[string]string{
			"x-trace-id": random,
		}},
		{name: "an ordered ID", same: browser.String(), headers: map[string]string{
			"traceparent": "00-" + browser.String() + "-" + parent + "-01", "tracestate": "ours=1",
		}},
		{name: "an old ordered ID", kept: old, headers: map[string]string{"x-trace-id": old}},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, edge.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range others {
			r.Header.Set(name, "theirs")
		}
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()

		span := unchanged.Ended()[i]
		id := span.SpanContext().TraceID()
		if !traceid.Plausible(id, time.Now(), time.Minute, time.Second) ||
			!slices.Equal(response.Header.Values("x-trace-id"), []string{id.String()}) {
			t.Errorf("%s: the service's trace is %s, of %s; the response has %q", c.name, id,
				traceid.Time(id), response.Header.Values("x-trace-id"))
		}
		spans := recorder.Ended()
		proxied, root := spans[len(spans)-2], spans[len(spans)-1]
		if span.Parent().SpanID() != proxied.SpanContext().SpanID() ||
			proxied.Parent().SpanID() != root.SpanContext().SpanID() {
			t.Errorf("%s: the spans do not form one trace", c.name)
		}
		for name, values := range received {
			text := strings.Join(values, "")
			if strings.Contains(text, random) || strings.Contains(text, "theirs") {
				t.Errorf("%s: the service receives %s: %s", c.name, name, text)
			}
		}
		if received.Get("X-B3-Sampled") != "1" || received.Get("X-B3-Flags") != "" ||
			received.Get("X-B3-ParentSpanId") != "" {
			t.Errorf("%s: the gateway's decision is not received: %v", c.name, received)
		}
		if c.same != "" {
			if id.String() != c.same || root.Parent().SpanID().String() != parent ||
				received.Get("tracestate") != "ours=1" {
				t.Errorf("%s: the trace is %s, its root's parent %s, tracestate %q", c.name, id,
					root.Parent().SpanID(), received.Get("tracestate"))
			}
			continue
		}
		if root.Parent().IsValid() || id.String() <= last {
			t.Errorf("%s: %s after %s, parent %v", c.name, id, last, root.Parent())
		}
		last = id.String()
		var linked trace.TraceID
		if links := root.Links(); len(links) == 1 {
			linked = links[0].SpanContext.TraceID()
		}
		if c.linked != "" && linked.String() != c.linked {
			t.Errorf("%s: links %v", c.name, root.Links())
		}
		attributes := attribute.NewSet(root.Attributes()...)
		kept, _ := attributes.Value("http.request.header.x-trace-id")
		if strings.Join(kept.AsStringSlice(), "") != c.kept {
			t.Errorf("%s: attribute %v, want %q", c.name, kept.AsStringSlice(), c.kept)
		}
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("GATEWAY_TEST") != "" {
		drain = time.Second
		main()
		return
	}
	os.Exit(m.Run())
}

// On SIGTERM the gateway serves the last request, closes a stream that stays open, and sends its
// spans, with the name of its service. TestFirstDay of integration/deploy shows that its lease
// ends.
func TestStop(t *testing.T) {
	arrived, answer := make(chan string, 2), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		arrived <- r.URL.Path
		if r.URL.Path == "/stream" {
			<-r.Context().Done()
			return
		}
		<-answer
		fmt.Fprint(w, "at last")
	}))
	defer service.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "gateway", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "GATEWAY_TEST=yes", "BACKEND_URL="+service.URL,
		"OTEL_SERVICE_NAME=edge", "PROBE_ADDRESS=127.0.0.1:0")
	var spans bytes.Buffer
	cmd.Stdout = &spans
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var urls []string
	for lines := bufio.NewScanner(stderr); len(urls) < 2 && lines.Scan(); {
		_, url, _ := strings.Cut(lines.Text(), " serves ")
		urls = append(urls, url)
	}
	if len(urls) < 2 {
		t.Fatal("the gateway does not serve")
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	if text, err := fetch(urls[1]); text != "ready\n" || err != nil {
		t.Errorf("/ready: %q, %v", text, err)
	}

	texts := map[string]chan string{"/stream": make(chan string, 1), "/slow": make(chan string, 1)}
	for path, text := range texts {
		go func() {
			body, err := fetch(urls[0] + path)
			text <- fmt.Sprint(body, err)
		}()
		<-arrived
	}
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { close(answer) })
	if got := <-texts["/slow"]; got != "at last<nil>" {
		t.Errorf("the last request got %s", got)
	}
	if err := cmd.Wait(); err != nil || time.Since(began) > 3*time.Second {
		t.Errorf("the end took %s: %v", time.Since(began), err)
	}
	if got := <-texts["/stream"]; !strings.Contains(got, "EOF") {
		t.Errorf("the stream ended with %s", got)
	}
	// Each request has a server's and a client's span.
	if n := strings.Count(spans.String(), `"Value":"edge"`); n != 4 {
		t.Errorf("%d spans of the service edge, want 4:\n%s", n, &spans)
	}
}

func fetch(address string) (body string, err error) {
	response, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
