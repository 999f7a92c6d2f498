package deploy

import (
	"encoding/json"
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

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/traceid"
)

// span is a span as a program prints it.
type span struct {
	SpanContext, Parent struct{ TraceID, SpanID string }
	Links               []struct{ SpanContext struct{ TraceID string } }
	Attributes          []struct {
		Key   string
		Value struct{ Value any }
	}
}

// The example's gateway in front of a service that cannot be changed. The service's traces are the
// gateway's, whatever a caller sends: TestHops and TestRemoveContext have all forms of headers.
// On SIGTERM the gateway serves the last request, closes a stream that stays open, and sends its
// spans.
func TestGateway(t *testing.T) {
	const random, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	var received http.Header
	arrived, answer := make(chan bool), make(chan bool)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		received = r.Header.Clone()
		w.Header().Set("x-trace-id", random) // the gateway replaces it
		if r.URL.Path == "/" {
			return
		}
		_ = http.NewResponseController(w).Flush()
		arrived <- true
		if r.URL.Path == "/stream" {
			<-r.Context().Done()
		} else {
			<-answer
			fmt.Fprint(w, "at last")
		}
	}))
	t.Cleanup(behind.Close)
	cmd := exec.CommandContext(t.Context(), child.Build(t, example), "gateway", "127.0.0.1:0")
	cmd.Env = []string{"BACKEND_URL=" + behind.URL, "OTEL_SERVICE_NAME=edge",
		probeVar + "=127.0.0.1:0"}
	p := child.Run(t, cmd)
	urls := child.Await(t, p, 2, child.Served)
	if _, text := child.Get(t, urls[1]+"/ready"); text != "ready\n" {
		t.Errorf("/ready: %q", text)
	}

	made, _ := idgen.New().NewIDs(t.Context())
	cases := []struct {
		name   string
		same   string // the trace ID continues
		linked string // the span has a link to the caller's, in this trace
		kept   string // an attribute has this ID, which names no span

		headers []string
		context []string // that the service gets
	}{
		{name: "without a trace"},
		{name: "an outsider's", linked: random, headers: []string{"traceparent", "00-" + random +
			"-" + parent + "-01", "tracestate", "theirs=1", "baggage", "theirs"}},
		{name: "in x-trace-id alone", kept: random, headers: []string{"x-trace-id", random}},
		// Callers whose IDs look right do not decide about sampling either.
		{name: "an ordered ID", same: made.String(), linked: made.String(),
			headers: []string{"b3", made.String() + "-" + parent + "-0"}},
	}
	for i, c := range cases {
		header, _ := child.Get(t, urls[0], c.headers...)
		context := strings.Split(received.Get("traceparent"), "-")
		id, err := trace.TraceIDFromHex(context[1])
		if err != nil || !slices.Equal(header.Values("x-trace-id"), context[1:2]) ||
			!traceid.NewVerifier(nil, traceid.WithPlausible(time.Minute)).Plausible(id) ||
			c.same != "" && c.same != context[1] || context[3] != "01" {
			t.Errorf("%s: the service gets %s, the response has %q", c.name, context,
				header.Values("x-trace-id"))
		}
		if all := fmt.Sprint(received); strings.Contains(all, random) ||
			strings.Contains(all, "theirs") {
			t.Errorf("%s: the service receives %s", c.name, all)
		}
		cases[i].context = context
	}

	streamed, stopped := make(chan error, 1), make(chan error)
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
		stopped <- p.Terminate()
	}()
	if _, text := child.Get(t, urls[0]+"/slow"); text != "at last" {
		t.Errorf("the last request got %q", text)
	}
	if err := <-stopped; err != nil {
		t.Errorf("the end: %v", err)
	}
	if err := <-streamed; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v", err)
	}

	spans := map[string]span{}
	for line := range strings.Lines(p.Output()) {
		var s span
		if json.Unmarshal([]byte(line), &s) == nil {
			spans[s.SpanContext.SpanID] = s
		}
	}
	// Each request has a server's and a client's span.
	if want := 2 * (len(cases) + 2); len(spans) != want ||
		!strings.Contains(p.Output(), `"Value":"edge"`) {
		t.Fatalf("%d spans, want %d of the service edge:\n%s", len(spans), want, p.Output())
	}
	for _, c := range cases {
		root := spans[spans[c.context[2]].Parent.SpanID]
		linked, kept := "", ""
		for _, l := range root.Links {
			linked += l.SpanContext.TraceID
		}
		for _, a := range root.Attributes {
			if a.Key == "http.request.header.x-trace-id" {
				kept = strings.Trim(fmt.Sprint(a.Value.Value), "[]")
			}
		}
		if root.SpanContext.TraceID != c.context[1] ||
			strings.Trim(root.Parent.SpanID, "0") != "" ||
			linked != c.linked || kept != c.kept {
			t.Errorf("%s: the root is %+v", c.name, root)
		}
	}
}
