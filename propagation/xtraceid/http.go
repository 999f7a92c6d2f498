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
			flags := w.span.TraceFlags() & (trace.FlagsSampled | trace.FlagsRandom)
			w.timing = fmt.Sprintf(`traceparent;desc="00-%s-%s-%s"`, w.span.TraceID(), w.span.SpanID(), flags)
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
			defer response.begin() // a response without a body, or an outer handler's answer to a panic
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
}

func (w *responseWriter) setHeaders() {
	const expose, timing = "Access-Control-Expose-Headers", "Server-Timing"
	h := w.ResponseWriter.Header()
	h.Set(DefaultHeader, w.span.TraceID().String())
	h[expose] = replace(h[expose], DefaultHeader, DefaultHeader)
	if w.timing != "" {
		h[timing] = replace(h[timing], "traceparent;", w.timing)
		h[expose] = replace(h[expose], timing, timing)
	}
}

// replace returns the values of a header with ours instead of those that begin like it. A list of
// several is kept.
func replace(values []string, begin, ours string) []string {
	return append(slices.DeleteFunc(values, func(v string) bool {
		return len(v) >= len(begin) && strings.EqualFold(v[:len(begin)], begin) && !strings.Contains(v, ",")
	}), ours)
}

// Header also sets the headers for a handler that writes a response to a hijacked connection.
func (w *responseWriter) Header() http.Header {
	if w.hijacked {
		w.setHeaders()
	}
	return w.ResponseWriter.Header()
}

func (w *responseWriter) WriteHeader(status int) {
	w.setHeaders()
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

// Untrusted returns a function for otelhttp's WithPublicEndpointFn. It returns true for requests
// whose trace ID verify refuses; they start a new trace with a link to the span in the request, if
// there is one. verify is called on each request with a trace ID and must be safe for concurrent
// use; a nil verify refuses every ID.
//
//	otelhttp.NewHandler(mux, "edge",
//		otelhttp.WithPublicEndpointFn(xtraceid.Untrusted(verifier.Verify)))
//
// This is a hint of origin, not authentication. Only the span context is dropped: B3's debug flag
// of a refused request, and baggage, still reach downstream services. [WithVerifier] drops the flag.
func Untrusted(verify func(trace.TraceID) bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		// What otelhttp has extracted. A local span belongs to this process.
		sc := trace.SpanContextFromContext(r.Context())
		if !sc.IsRemote() || !sc.HasTraceID() {
			return false
		}
		return verify == nil || !verify(sc.TraceID())
	}
}
