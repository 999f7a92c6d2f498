package xtraceid

import (
	"net/http"

	"go.opentelemetry.io/otel/trace"
)

// ResponseOption configures a [ResponseHandler].
type ResponseOption interface{ applyResponse(*responseConfig) }

type responseOptionFunc func(*responseConfig)

func (f responseOptionFunc) applyResponse(c *responseConfig) { f(c) }

type responseConfig struct {
	header       string
	expose       bool
	serverTiming bool
}

// WithResponseHeader sets the name of the response header, by default [DefaultHeader].
// Names are checked as by [WithHeader].
func WithResponseHeader(name string) ResponseOption {
	return responseOptionFunc(func(c *responseConfig) { c.header = checkHeader(name) })
}

// WithExpose sets whether the response lists the headers that ResponseHandler adds in
// Access-Control-Expose-Headers, without which scripts of other origins cannot read them. The
// default is true. This alone does not grant access to any origin.
func WithExpose(expose bool) ResponseOption {
	return responseOptionFunc(func(c *responseConfig) { c.expose = expose })
}

// WithServerTiming also sends the span context in Server-Timing, which browsers show in their
// developer tools and pass to scripts as PerformanceServerTiming, for the page itself too:
//
//	server-timing: traceparent;desc="00-32d1f0a9c8000005a1b2c3d4e5f60718-53995c3f42cd8ad8-01"
//
// Browser agents expect this name; W3C's draft of level 3 has "trace" instead. For scripts of
// other origins, also send Timing-Allow-Origin.
func WithServerTiming() ResponseOption {
	return responseOptionFunc(func(c *responseConfig) { c.serverTiming = true })
}

// ResponseHandler returns a handler that puts the trace ID on each response of next. It reads the
// ID from the span context in the request's context, so it belongs inside the handler that sets
// it:
//
//	otelhttp.NewHandler(xtraceid.ResponseHandler(mux), "server")
//
// Without a trace ID in the context it adds nothing.
//
// The headers are set before next is called, and next gets the original ResponseWriter, with all
// its features (Flush, Hijack, Push, ReadFrom, [http.ResponseController]). So they are on every
// response that is sent with the writer's header map: streamed, empty, informational (1xx), a 101
// before Hijack, and the error that an outer recovery handler sends after a panic. next can
// override them:
//
//   - A handler that writes its response to a hijacked connection itself must copy the headers
//     from the writer's Header, as [net/http/httputil.ReverseProxy] does, or pass that to the
//     websocket library that writes it.
//   - A CORS handler that sets Access-Control-Expose-Headers belongs outside, where the two values
//     are combined. Inside it replaces the value and must list the header itself.
//   - A reverse proxy adds the headers of the upstream response. If that has its own trace ID,
//     delete it in ModifyResponse.
func ResponseHandler(next http.Handler, opts ...ResponseOption) http.Handler {
	c := responseConfig{header: DefaultHeader, expose: true}
	for _, o := range opts {
		o.applyResponse(&c)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sc := trace.SpanContextFromContext(r.Context())
		if sc.HasTraceID() {
			w.Header().Set(c.header, sc.TraceID().String())
			if c.expose {
				w.Header().Add(exposeHeaders, c.header)
			}
		}
		if c.serverTiming && sc.IsValid() {
			w.Header().Add(serverTiming, timing(sc))
			if c.expose {
				w.Header().Add(exposeHeaders, serverTiming)
			}
		}
		next.ServeHTTP(w, r)
	})
}

const (
	exposeHeaders = "Access-Control-Expose-Headers"
	serverTiming  = "Server-Timing"
)

// timing returns the Server-Timing metric for a span.
func timing(sc trace.SpanContext) string {
	flags := sc.TraceFlags() & (trace.FlagsSampled | trace.FlagsRandom)
	return `traceparent;desc="00-` + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + flags.String() + `"`
}
