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
)

const expose = "Access-Control-Expose-Headers"

// Every response has the headers once, with the span's ID, whatever net/http's handlers and
// otelhttp do to it. That the handler gets the server's own writer, and so can stream, hijack and
// send early hints, is tested with the package.
func TestResponses(t *testing.T) {
	modified := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	content := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x", modified, strings.NewReader("hello"))
	})
	recovered := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					http.Error(w, "sorry", http.StatusInternalServerError)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
	cases := []struct {
		name    string
		handler http.Handler
		outside func(http.Handler) http.Handler
		headers []string
		status  int
	}{
		{name: "content", handler: content, status: 200},
		{name: "bad range", handler: content, headers: []string{"Range", "bytes=9999999-"}, status: 416}, // http.Error
		{name: "not modified", handler: content, headers: []string{"If-Modified-Since", modified.Format(http.TimeFormat)}, status: 304},
		{name: "panic, recovered outside", handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") }),
			outside: recovered, status: 500},
		{name: "timeout", handler: http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			time.Millisecond, ""), status: 503},
	}
	protocols := map[string]func(*httptest.Server){
		"HTTP/1.1": (*httptest.Server).Start,
		"HTTP/2.0": func(s *httptest.Server) {
			s.EnableHTTP2 = true
			s.StartTLS()
		},
	}
	for _, c := range cases {
		for protocol, start := range protocols {
			t.Run(c.name+", "+protocol, func(t *testing.T) {
				s := startService(t, c.handler, serviceConfig{outside: c.outside, setup: func(s *httptest.Server) {
					s.Config.ErrorLog = log.New(io.Discard, "", 0) // panics
					start(s)
				}})
				resp := get(t, s.Client(), s.URL, c.headers...)
				if resp.StatusCode != c.status || resp.Proto != protocol {
					t.Errorf("%s %s, want %d", resp.Proto, resp.Status, c.status)
				}
				id := s.ended(t, 1)[0].SpanContext().TraceID().String()
				if got := resp.Header.Values("x-trace-id"); !slices.Equal(got, []string{id}) {
					t.Errorf("x-trace-id %q, want the span's %s", got, id)
				}
				if got := resp.Header.Values(expose); !slices.Equal(got, []string{"x-trace-id"}) {
					t.Errorf("%s %q, want x-trace-id", expose, got)
				}
			})
		}
	}
}
