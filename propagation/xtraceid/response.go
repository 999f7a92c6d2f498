package xtraceid

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/felixge/httpsnoop"
	"go.opentelemetry.io/otel/trace"
)

// ResponseOption configures responses.
type ResponseOption interface{ response(*responseConfig) }

type responseConfig struct {
	header string
	timing bool
}

func newResponseConfig(opts []ResponseOption) responseConfig {
	c := responseConfig{header: DefaultHeader}
	for _, o := range opts {
		if o != nil {
			o.response(&c)
		}
	}
	return c
}

type serverTiming struct{}

func (serverTiming) response(c *responseConfig) { c.timing = true }

// WithServerTiming makes responses also have the span context in Server-Timing, which browsers show
// in their developer tools and pass to scripts as PerformanceServerTiming, for the page itself too:
//
//	server-timing: traceparent;desc="00-32d1f0a9c8000005a1b2c3d4e5f60718-53995c3f42cd8ad8-01"
//
// Browser agents expect this name; W3C's draft of level 3 has "trace" instead. For scripts of
// other origins, also send Timing-Allow-Origin.
func WithServerTiming() ResponseOption {
	return serverTiming{}
}

// ResponseHandler returns a handler that puts the trace ID on each response of next, in
// [DefaultHeader] or that of [WithHeader], and lists what it adds in Access-Control-Expose-Headers,
// without which scripts of other origins cannot read it. It reads the ID from the span context in
// the request's context, so it belongs inside the handler that sets it:
//
//	otelhttp.NewHandler(xtraceid.ResponseHandler(mux), "server")
//
// It does not answer a browser's preflight: requests from other origins also need a handler for
// CORS that allows the headers which the page sends, usually traceparent, tracestate, baggage and
// x-trace-id.
//
// Without a trace ID in the context it adds nothing. It also calls [AddLink]. Frameworks that start
// the span in a middleware of their own need [SetResponseHeaders] instead.
//
// The headers win over those of next, such as the upstream headers that a reverse proxy adds. They
// are on every response: streamed, empty, informational (1xx), a 101, and the error that an outer
// recovery handler sends after a panic. A handler that writes its response to a hijacked connection
// itself must copy them from the writer's Header, as [net/http/httputil.ReverseProxy] does.
//
// The writer that next gets has the features of the server's (Flush, Hijack, ReadFrom,
// [http.ResponseController]).
func ResponseHandler(next http.Handler, opts ...ResponseOption) http.Handler {
	c := newResponseConfig(opts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		AddLink(r.Context())
		if sc := trace.SpanContextFromContext(r.Context()); sc.HasTraceID() {
			response := newResponse(c, sc, w.Header)
			response.set()
			// For a response without a body, or an outer handler's answer to a panic.
			defer response.begin()
			w = httpsnoop.Wrap(w, response.hooks())
		}
		next.ServeHTTP(w, r)
	})
}

// SetResponseHeaders sets in h the headers that [ResponseHandler] adds to a response, if ctx has a
// trace ID. It is for frameworks in which no http.Handler runs between the middleware that starts
// the span and the response; docs/headers.md has a line for each.
func SetResponseHeaders(ctx context.Context, h http.Header, opts ...ResponseOption) {
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		newResponse(newResponseConfig(opts), sc, func() http.Header { return h }).set()
	}
}

// response sets the headers of one response.
type response struct {
	header          func() http.Header
	key             string // of the trace ID
	timing          string // Server-Timing, if that is wanted
	begun, hijacked bool

	// The values of headers that only this response sets.
	id, exposed [1]string
}

// Names as keys of an [http.Header].
const (
	exposeKey = "Access-Control-Expose-Headers"
	timingKey = "Server-Timing"
)

func newResponse(c responseConfig, sc trace.SpanContext, header func() http.Header) *response {
	r := &response{header: header, key: http.CanonicalHeaderKey(c.header),
		id: [1]string{sc.TraceID().String()}, exposed: [1]string{c.header}}
	if c.timing && sc.IsValid() {
		flags := sc.TraceFlags() & (trace.FlagsSampled | flagRandom)
		r.timing = fmt.Sprintf(`traceparent;desc="00-%s-%s-%s"`, sc.TraceID(), sc.SpanID(), flags)
	}
	return r
}

func (r *response) set() {
	h := r.header()
	h[r.key] = r.id[:]
	if len(h[exposeKey]) == 0 {
		h[exposeKey] = r.exposed[:]
	} else {
		expose(h, r.exposed[0])
	}
	if r.timing != "" {
		h[timingKey] = replace(h[timingKey], r.timing, func(v string) bool {
			const ours = "traceparent;"
			return len(v) >= len(ours) && strings.EqualFold(v[:len(ours)], ours) &&
				!strings.Contains(v, ",")
		})
		expose(h, timingKey)
	}
}

func expose(h http.Header, name string) {
	h[exposeKey] = replace(h[exposeKey], name, func(v string) bool {
		return strings.EqualFold(v, name)
	})
}

// replace returns the values of a header with ours instead of the same ones. It does not change
// the slice, which handlers for CORS share between responses.
func replace(values []string, ours string, same func(string) bool) []string {
	if last := len(values) - 1; last >= 0 && values[last] == ours &&
		!slices.ContainsFunc(values[:last], same) {
		return values
	}
	return append(slices.DeleteFunc(slices.Clone(values), same), ours)
}

func (r *response) begin() {
	if !r.begun {
		r.begun = true
		r.set()
	}
}

// hooks set the headers when the response begins.
func (r *response) hooks() httpsnoop.Hooks {
	return httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(status int) {
				if status >= http.StatusOK {
					r.begin()
				} else {
					r.set() // a response follows, or what is hijacked after a 101
				}
				next(status)
			}
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(p []byte) (int, error) {
				r.begin()
				return next(p)
			}
		},
		WriteString: func(next httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
			return func(s string) (int, error) {
				r.begin()
				return next(s)
			}
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(from io.Reader) (int64, error) {
				r.begin()
				return next(from)
			}
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				r.begin()
				next()
			}
		},
		// For a handler that writes a response to a hijacked connection.
		Hijack: func(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) {
				r.hijacked = true
				return next()
			}
		},
		Header: func(next httpsnoop.HeaderFunc) httpsnoop.HeaderFunc {
			return func() http.Header {
				if r.hijacked {
					r.set()
				}
				return next()
			}
		},
	}
}
