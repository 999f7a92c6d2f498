package tracing

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

// Every response has the headers once, over HTTP/2 too, whatever net/http's handlers and otelhttp
// do to it. That the handler's writer can stream, hijack and send early hints is tested with the
// package.
func TestResponses(t *testing.T) {
	modified := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	content := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x", modified, strings.NewReader("hello"))
	})
	for _, c := range []struct {
		handler http.Handler
		header  []string
		status  int
	}{
		{handler: content, status: 200},
		{handler: content, header: []string{"Range", "bytes=9999999-"}, status: 416}, // http.Error
		{handler: content, header: []string{"If-Modified-Since", modified.Format(http.TimeFormat)}, status: 304},
		{handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") }), status: 500},
		{handler: http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			time.Millisecond, ""), status: 503},
	} {
		traced := otelhttp.NewHandler(xtraceid.ResponseHandler(c.handler), "server", otelhttp.WithPropagators(xtraceid.New()))
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					http.Error(w, "sorry", http.StatusInternalServerError)
				}
			}()
			traced.ServeHTTP(w, r)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // panics
		s.EnableHTTP2 = true
		s.StartTLS()
		resp := get(t, s.Client(), s.URL, append(c.header, "x-trace-id", traceT)...)
		s.Close()
		if resp.StatusCode != c.status || resp.ProtoMajor != 2 {
			t.Errorf("%s %s, want %d", resp.Proto, resp.Status, c.status)
		}
		for name, want := range map[string]string{"x-trace-id": traceT, "Access-Control-Expose-Headers": "x-trace-id"} {
			if got := resp.Header.Values(name); !slices.Equal(got, []string{want}) {
				t.Errorf("%d: %s %q, want %q", c.status, name, got, want)
			}
		}
	}
}
