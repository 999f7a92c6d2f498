package xtraceid

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// ResponseOption configures a [ResponseHandler].
type ResponseOption func(*responseWriter)

// WithServerTiming also sends the span context in Server-Timing, which browsers show in their
// developer tools and pass to scripts as PerformanceServerTiming, for the page itself too:
//
//	server-timing: traceparent;desc="00-32d1f0a9c8000005a1b2c3d4e5f60718-53995c3f42cd8ad8-01"
//
// Browser agents expect this name; W3C's draft of level 3 has "trace" instead. For scripts of
// other origins, also send Timing-Allow-Origin.
func WithServerTiming() ResponseOption {
	return func(w *responseWriter) {
		if w.span.IsValid() {
			flags := w.span.TraceFlags() & (trace.FlagsSampled | flagRandom)
			w.timing = fmt.Sprintf(`traceparent;desc="00-%s-%s-%s"`,
				w.span.TraceID(), w.span.SpanID(), flags)
		}
	}
}

// ResponseHandler returns a handler that puts the trace ID on each response of next, in
// [DefaultHeader], and lists what it adds in Access-Control-Expose-Headers, without which scripts
// of other origins cannot read it. It reads the ID from the span context in the request's context,
// so it belongs inside the handler that sets it:
//
//	otelhttp.NewHandler(xtraceid.ResponseHandler(mux), "server")
//
// Without a trace ID in the context it adds nothing.
//
// The headers win over those of next, such as the upstream headers that a reverse proxy adds. They
// are on every response: streamed, empty, informational (1xx), a 101, and the error that an outer
// recovery handler sends after a panic. A handler that writes its response to a hijacked connection
// itself must copy them from the writer's Header, as [net/http/httputil.ReverseProxy] does.
//
// The writer that next gets has the features of the server's (Flush, Hijack, ReadFrom,
// [http.ResponseController]) except Push.
func ResponseHandler(next http.Handler, opts ...ResponseOption) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sc := trace.SpanContextFromContext(r.Context()); sc.HasTraceID() {
			response := &responseWriter{ResponseWriter: w, span: sc}
			for _, o := range opts {
				if o != nil {
					o(response)
				}
			}
			// For a response without a body, or an outer handler's answer to a panic.
			defer response.begin()
			w = response
		}
		next.ServeHTTP(w, r)
	})
}

// responseWriter sets its headers when the response begins.
type responseWriter struct {
	http.ResponseWriter
	span            trace.SpanContext
	timing          string // Server-Timing, if that is wanted
	begun, hijacked bool

	// The values of headers that only this writer sets.
	id, exposed [1]string
}

// Names as keys of an [http.Header].
const (
	idKey     = "X-Trace-Id" // of DefaultHeader
	exposeKey = "Access-Control-Expose-Headers"
	timingKey = "Server-Timing"
)

func (w *responseWriter) setHeaders() {
	h := w.ResponseWriter.Header()
	w.id[0] = w.span.TraceID().String()
	h[idKey] = w.id[:]
	if len(h[exposeKey]) == 0 {
		w.exposed[0] = DefaultHeader
		h[exposeKey] = w.exposed[:]
	} else {
		expose(h, DefaultHeader)
	}
	if w.timing != "" {
		h[timingKey] = replace(h[timingKey], w.timing, func(v string) bool {
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
	return append(slices.DeleteFunc(slices.Clone(values), same), ours)
}

// Header also sets the headers for a handler that writes a response to a hijacked connection.
func (w *responseWriter) Header() http.Header {
	if w.hijacked {
		w.setHeaders()
	}
	return w.ResponseWriter.Header()
}

func (w *responseWriter) WriteHeader(status int) {
	if !w.begun {
		w.setHeaders()
	}
	// A response follows an informational one, and what is hijacked after a 101.
	w.begun = w.begun || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

func (w *responseWriter) begin() {
	if !w.begun {
		w.begun = true
		w.setHeaders()
	}
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

func (w *responseWriter) ReadFrom(r io.Reader) (int64, error) {
	w.begin()
	return io.Copy(w.ResponseWriter, r) // the server's writer may use sendfile
}

func (w *responseWriter) Flush() {
	w.begin()
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *responseWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for an [http.ResponseController].
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
