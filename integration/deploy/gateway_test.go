package deploy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/traceid"
)

// gateway runs the example's gateway in front of a backend, and returns its URLs: its own and that
// of its probe.
func gateway(t *testing.T, backend http.Handler) (p *child.Server, urls []string) {
	t.Helper()
	behind := httptest.NewServer(backend)
	t.Cleanup(behind.Close)
	cmd := exec.CommandContext(t.Context(), child.Build(t, example), "gateway", "127.0.0.1:0")
	cmd.Env = []string{"BACKEND_URL=" + behind.URL, "OTEL_SERVICE_NAME=edge",
		probeVar + "=127.0.0.1:0"}
	p = child.Run(t, cmd)
	return p, child.Await(t, p, 2, child.Served)
}

// A service that reads W3C's headers and generates random IDs gets its traces from the gateway.
// TestHops and TestRemoveContext have all forms of headers.
func TestGateway(t *testing.T) {
	const random, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	var received http.Header
	unchanged := tracetest.NewSpanRecorder()
	p, urls := gateway(t, otelhttp.NewHandler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			received = r.Header.Clone()
			w.Header().Set("x-trace-id", random) // the gateway replaces it
		}), "service",
		otelhttp.WithTracerProvider(
			sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(unchanged))),
		otelhttp.WithPropagators(propagation.TraceContext{})))

	made, _ := idgen.New().NewIDs(t.Context())
	browser, old := made.String(), traceid.Max(time.Now().Add(-time.Hour)).String()
	cases := []struct {
		name    string
		headers []string
		same    string // the trace ID continues
		linked  string // the span has a link to the caller's, in this trace
		kept    string // an attribute has this ID, which names no span
	}{
		{name: "without a trace"},
		{name: "an outsider's trace", linked: random, headers: []string{
			"traceparent", "00-" + random + "-" + parent + "-01", "tracestate", "theirs=1"}},
		{name: "in B3, with the debug flag", linked: random, headers: []string{"X-B3-TraceId",
			random, "X-B3-SpanId", parent, "X-B3-Flags", "1", "baggage", "theirs"}},
		{name: "in x-trace-id alone", kept: random, headers: []string{"x-trace-id", random}},
		// Callers whose IDs look right do not decide about sampling either.
		{name: "an ordered ID", same: browser, linked: browser,
			headers: []string{"b3", browser + "-" + parent + "-0"}},
		{name: "an old ordered ID", kept: old, headers: []string{"x-trace-id", old}},
	}
	for i, c := range cases {
		header, _ := child.Get(t, urls[0], c.headers...)
		id := unchanged.Ended()[i].SpanContext().TraceID()
		if !traceid.NewVerifier(nil, traceid.WithPlausible(time.Minute)).Plausible(id) ||
			!slices.Equal(header.Values("x-trace-id"), []string{id.String()}) {
			t.Errorf("%s: the service's trace is %s, of %s; the response has %q", c.name, id,
				traceid.Time(id), header.Values("x-trace-id"))
		}
		for name, values := range received {
			text := strings.Join(values, "")
			if strings.Contains(text, random) || strings.Contains(text, "theirs") {
				t.Errorf("%s: the service receives %s: %s", c.name, name, text)
			}
		}
		if received.Get("X-B3-Sampled") != "1" || received.Get("X-B3-Flags") != "" ||
			received.Get("X-B3-ParentSpanId") != "" || received.Get("tracestate") != "" {
			t.Errorf("%s: the gateway's decision is not received: %v", c.name, received)
		}
	}

	bySpan, last := map[string]span{}, ""
	for _, s := range printed(t, p) {
		bySpan[s.SpanContext.SpanID] = s
	}
	for i, c := range cases {
		service := unchanged.Ended()[i]
		id := service.SpanContext().TraceID().String()
		sent := bySpan[service.Parent().SpanID().String()]
		root := bySpan[sent.Parent.SpanID]
		if root.SpanContext.TraceID != id {
			t.Errorf("%s: the spans do not form one trace: %v, %v", c.name, sent, root)
		}
		if strings.Trim(root.Parent.SpanID, "0") != "" || c.same == "" && id <= last ||
			c.same != "" && id != c.same {
			t.Errorf("%s: %s after %s, parent %v, want %q", c.name, id, last, root.Parent, c.same)
		}
		last = id
		linked := ""
		for _, l := range root.Links {
			linked += l.SpanContext.TraceID
		}
		if linked != c.linked {
			t.Errorf("%s: links %v", c.name, root.Links)
		}
		kept := strings.Trim(root.Attributes.get("http.request.header.x-trace-id"), "[]")
		if kept != c.kept {
			t.Errorf("%s: the attribute is %q, want %q", c.name, kept, c.kept)
		}
	}
}

// On SIGTERM the gateway serves the last request, closes a stream that stays open, and sends its
// spans, with the name of its service.
func TestStop(t *testing.T) {
	arrived, answer := make(chan bool), make(chan struct{})
	p, urls := gateway(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		arrived <- true
		if r.URL.Path == "/stream" {
			<-r.Context().Done()
			return
		}
		<-answer
		fmt.Fprint(w, "at last")
	}))
	if _, text := child.Get(t, urls[1]+"/ready"); text != "ready\n" {
		t.Errorf("/ready: %q", text)
	}
	streamed, ended := make(chan error, 1), make(chan error)
	go func() {
		response, err := http.Get(urls[0] + "/stream")
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		streamed <- err
	}()
	<-arrived
	go func() {
		<-arrived
		time.AfterFunc(200*time.Millisecond, func() { close(answer) })
		ended <- p.Terminate()
	}()
	if _, text := child.Get(t, urls[0]+"/slow"); text != "at last" {
		t.Errorf("the last request got %q", text)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
	if err := <-streamed; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v", err)
	}
	// Each request has a server's and a client's span.
	names := map[string]int{}
	for _, s := range printed(t, p) {
		names[s.String()]++
	}
	if len(names) != 2 || names["edge server "] != 2 || names["edge client "] != 2 {
		t.Errorf("the spans are %v, want two of each kind", names)
	}
}
