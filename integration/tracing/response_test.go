package tracing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/propagation/xtraceid"
)

const expose = "Access-Control-Expose-Headers"

var protocols = []struct {
	name  string
	major int
	setup func(*httptest.Server)
}{
	{"HTTP/1.1", 1, (*httptest.Server).Start},
	{"HTTP/2", 2, func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.StartTLS()
	}},
	{"h2c", 2, func(s *httptest.Server) {
		var p http.Protocols
		p.SetUnencryptedHTTP2(true)
		s.Config.Protocols = &p
		s.Start()
		s.Client().Transport.(*http.Transport).Protocols = &p
	}},
}

// eachProtocol runs test on a server for each protocol, with the handler inside ResponseHandler
// and otelhttp.
func eachProtocol(t *testing.T, h http.Handler, c serviceConfig, test func(*testing.T, *service)) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			c := c
			c.setup = func(s *httptest.Server) {
				s.Config.ErrorLog = log.New(io.Discard, "", 0) // panics
				p.setup(s)
			}
			s := startService(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != p.major {
					t.Errorf("the request used %s", r.Proto)
				}
				h.ServeHTTP(w, r)
			}), c)
			test(t, s)
		})
	}
}

// checkResponse expects the status and the headers with the ID of the server's only span.
func checkResponse(t *testing.T, s *service, status int, got int, h http.Header) {
	t.Helper()
	if got != status {
		t.Errorf("status %d, want %d", got, status)
	}
	checkHeaders(t, h, s.ended(t, 1)[0].SpanContext().TraceID().String())
}

func checkHeaders(t *testing.T, h http.Header, id string) {
	t.Helper()
	if got := h.Values("x-trace-id"); !slices.Equal(got, []string{id}) {
		t.Errorf("x-trace-id %q, want the span's %s", got, id)
	}
	if got := h.Values(expose); !slices.Equal(got, []string{"x-trace-id"}) {
		t.Errorf("%s %q, want x-trace-id", expose, got)
	}
}

func TestResponses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	modified := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
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
		method  string
		headers []string
		status  int
	}{
		{name: "body", handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }), status: 200},
		{name: "never writes", handler: http.HandlerFunc(ok), status: 200},
		{name: "HEAD", handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }), method: http.MethodHead, status: 200},
		{name: "no content", handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), status: 204},
		{name: "error", handler: http.NotFoundHandler(), status: 404},
		{name: "redirect", handler: http.RedirectHandler("/elsewhere", http.StatusFound), status: 302},
		{name: "file", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }), status: 200},
		{name: "range", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }),
			headers: []string{"Range", "bytes=5-9"}, status: 206},
		{name: "bad range", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) }),
			headers: []string{"Range", "bytes=9999999-"}, status: 416},
		{name: "not modified", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x", modified, strings.NewReader("hello"))
		}), headers: []string{"If-Modified-Since", modified.Format(http.TimeFormat)}, status: 304},
		{name: "panic, recovered outside", handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("on purpose") }),
			outside: recovered, status: 500},
		{name: "timeout", handler: http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			time.Millisecond, ""), status: 503},
		{name: "inside http.ServeMux", handler: func() http.Handler {
			m := http.NewServeMux()
			m.Handle("GET /{$}", http.HandlerFunc(ok))
			return m
		}(), status: 200},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			eachProtocol(t, c.handler, serviceConfig{outside: c.outside}, func(t *testing.T, s *service) {
				method := c.method
				if method == "" {
					method = http.MethodGet
				}
				resp := do(t, s.Client(), method, s.URL, c.headers...)
				checkResponse(t, s, c.status, resp.StatusCode, resp.Header)
			})
		})
	}
}

// The headers arrive while the handler is still running.
func TestResponseStreams(t *testing.T) {
	flush := map[string]func(http.ResponseWriter) error{
		"Flusher":            func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
		"ResponseController": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	}
	for name, flush := range flush {
		t.Run(name, func(t *testing.T) {
			more := make(chan struct{}, 1)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "first ")
				if err := flush(w); err != nil {
					t.Error(err)
				}
				select {
				case <-more:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "second")
			})
			eachProtocol(t, h, serviceConfig{}, func(t *testing.T, s *service) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := s.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				first := make([]byte, 6)
				if _, err := io.ReadFull(resp.Body, first); err != nil {
					t.Fatal(err)
				}
				more <- struct{}{}
				rest, err := io.ReadAll(resp.Body)
				if err != nil || string(first)+string(rest) != "first second" {
					t.Errorf("body %q%q, %v", first, rest, err)
				}
				checkResponse(t, s, http.StatusOK, resp.StatusCode, resp.Header)
			})
		})
	}
}

func TestResponsePanics(t *testing.T) {
	for name, value := range map[string]any{"abort": http.ErrAbortHandler, "plain": "on purpose"} {
		t.Run(name, func(t *testing.T) {
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/late" {
					_, _ = io.WriteString(w, "begun")
					_ = http.NewResponseController(w).Flush()
				}
				panic(value)
			})
			eachProtocol(t, h, serviceConfig{}, func(t *testing.T, s *service) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				if resp, err := s.Client().Do(r); err == nil {
					resp.Body.Close()
					t.Errorf("%s, want no response", resp.Status)
				}
				s.ended(t, 1)
				s.spans.Reset()

				r.URL.Path = "/late"
				resp, err := s.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if _, err := io.ReadAll(resp.Body); err == nil {
					t.Error("the body is complete, want it truncated")
				}
				checkResponse(t, s, http.StatusOK, resp.StatusCode, resp.Header)
			})
		})
	}
}

// Informational responses have the headers, and so does the final one.
func TestResponseEarlyHints(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
	})
	eachProtocol(t, h, serviceConfig{}, func(t *testing.T, s *service) {
		var early http.Header
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if code != http.StatusEarlyHints {
					return fmt.Errorf("got %d", code)
				}
				early = http.Header(h)
				return nil
			},
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		checkResponse(t, s, http.StatusAccepted, resp.StatusCode, resp.Header)
		checkHeaders(t, early, s.ended(t, 1)[0].SpanContext().TraceID().String())
	})
}

// The handler can use the features of the server's writer through otelhttp and ResponseHandler.
func TestResponseWriterAbilities(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		deadline := time.Now().Add(time.Minute)
		if err := errors.Join(c.SetReadDeadline(deadline), c.SetWriteDeadline(deadline)); err != nil {
			t.Error(err)
		}
		if err := c.EnableFullDuplex(); err != nil {
			t.Errorf("full duplex: %v", err)
		}
		_, reader := w.(io.ReaderFrom)
		_, hijacker := w.(http.Hijacker)
		_, pusher := w.(http.Pusher)
		h1 := r.ProtoMajor == 1
		if reader != h1 || hijacker != h1 || pusher == h1 {
			t.Errorf("%s: ReaderFrom %v, Hijacker %v, Pusher %v", r.Proto, reader, hijacker, pusher)
		}
		// Echo while the request is still being received.
		if err := c.Flush(); err != nil {
			t.Error(err)
		}
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, line)
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
		}
	})
	eachProtocol(t, h, serviceConfig{}, func(t *testing.T, s *service) {
		body, send := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		for _, line := range []string{"ping\n", "pong\n"} {
			if _, err := io.WriteString(send, line); err != nil {
				t.Fatal(err)
			}
			if got, err := in.ReadString('\n'); err != nil || got != line {
				t.Fatalf("echo %q, %v, want %q", got, err, line)
			}
		}
		send.Close()
		if _, err := io.Copy(io.Discard, in); err != nil {
			t.Error(err)
		}
		checkResponse(t, s, http.StatusOK, resp.StatusCode, resp.Header)
	})
}

// upgrade asks the server for the protocol "echo", sends a line and expects it back.
func upgrade(t *testing.T, s *httptest.Server) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	// Do not use the client: with its time limit, the body is not a connection.
	resp, err := s.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		resp.Body.Close()
		t.Fatalf("the body is a %T, want a connection", resp.Body)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "ping\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "ping\n" {
		t.Errorf("echo %q, %v", line, err)
	}
	return resp
}

// echo hijacks the connection, as websocket libraries do. They differ in how they send the
// response.
func echo(t *testing.T, answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		if answer == "WriteHeader" {
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if answer == "Header" {
			_, _ = io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\n")
			_ = w.Header().Write(rw)
			_, _ = io.WriteString(rw, "\r\n")
			_ = rw.Flush()
		}
		line, err := rw.ReadString('\n')
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(rw, line)
		_ = rw.Flush()
	}
}

func TestResponseHijacked(t *testing.T) {
	for _, answer := range []string{"WriteHeader", "Header"} {
		t.Run(answer, func(t *testing.T) {
			s := startService(t, echo(t, answer), serviceConfig{})
			resp := upgrade(t, s.Server)
			checkResponse(t, s, http.StatusSwitchingProtocols, resp.StatusCode, resp.Header)
		})
	}
	t.Run("ReverseProxy", func(t *testing.T) {
		backend := httptest.NewServer(echo(t, "WriteHeader"))
		defer backend.Close()
		s := startService(t, proxyTo(t, backend.URL, nil), serviceConfig{})
		resp := upgrade(t, s.Server)
		checkResponse(t, s, http.StatusSwitchingProtocols, resp.StatusCode, resp.Header)
	})
}

func proxyTo(t *testing.T, to string, modify func(*http.Response) error) http.Handler {
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ModifyResponse: modify,
	}
}

// A reverse proxy in front of a service that also sets the header: without the recipe in the
// package documentation there are two headers.
func TestResponseProxied(t *testing.T) {
	drop := func(r *http.Response) error {
		r.Header.Del("X-Trace-Id")
		r.Header.Del(expose)
		return nil
	}
	for _, c := range []struct {
		name   string
		modify func(*http.Response) error
		count  int
	}{{"unchanged", nil, 2}, {"dropped", drop, 1}} {
		t.Run(c.name, func(t *testing.T) {
			backend := startService(t, http.HandlerFunc(ok), serviceConfig{})
			s := startService(t, proxyTo(t, backend.URL, c.modify), serviceConfig{})
			resp := get(t, s.Client(), s.URL)
			backend.ended(t, 1)
			id := s.ended(t, 1)[0].SpanContext().TraceID().String()
			if got := resp.Header.Values("x-trace-id"); len(got) != c.count || got[0] != id {
				t.Errorf("x-trace-id %q, want %d, the first %s", got, c.count, id)
			}
		})
	}
}

// A client that follows a redirect remains in its trace.
func TestRedirectFollowed(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/", http.RedirectHandler("/end", http.StatusFound))
	mux.HandleFunc("/end", ok)
	s := startService(t, mux, serviceConfig{})
	p := xtraceid.New()
	ctx, span := s.provider.Tracer("test").Start(context.Background(), "both requests")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client(p).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	span.End()
	if resp.Request.URL.Path != "/end" {
		t.Fatalf("ended at %s", resp.Request.URL)
	}
	id := span.SpanContext().TraceID()
	checkHeaders(t, resp.Header, id.String())
	for _, span := range s.ended(t, 5) {
		if got := span.SpanContext().TraceID(); got != id {
			t.Errorf("%s has trace %s, want %s", span.Name(), got, id)
		}
	}
}
