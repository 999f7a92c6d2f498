package xtraceid

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
)

// DefaultHeader is the name of the header that carries the trace ID.
const DefaultHeader = "x-trace-id"

// Option configures the propagator or a response; its documentation says which.
type Option func(*config)

type config struct {
	header string

	// of the propagator
	encoding        Encoding
	b3TraceID64     bool
	deferredSampled bool
	dashes          bool
	randomFlag      bool

	serverTiming bool // of responses
}

func newConfig(opts []Option) config {
	c := config{header: DefaultHeader}
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	return c
}

// WithHeader sets the name of the header that carries the trace ID, by default [DefaultHeader], in
// requests and responses. The name is used as given; carriers other than HTTP headers may be
// case-sensitive. A name that is not an HTTP field name (RFC 9110, section 5.6.2), which would make
// HTTP clients refuse the request, or that belongs to another propagation format, such as
// traceparent or X-B3-TraceId, is reported to [otel.Handle], and the default is used.
func WithHeader(name string) Option {
	const token = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	reason := ""
	switch {
	case name == "" || strings.Trim(name, token) != "":
		reason = "it is not an HTTP field name"
	case !strings.EqualFold(name, DefaultHeader) && isContext(name):
		reason = "it belongs to another propagation format"
	}
	if reason != "" {
		otel.Handle(fmt.Errorf("xtraceid: cannot use the header name %q: %s; using %q",
			name, reason, DefaultHeader))
		name = DefaultHeader
	}
	return func(c *config) { c.header = name }
}

// Encoding is how B3 is written. Both encodings are always read.
type Encoding int

const (
	// B3MultipleHeaders writes the headers X-B3-TraceId, X-B3-SpanId and X-B3-Sampled or
	// X-B3-Flags. It is the default.
	B3MultipleHeaders Encoding = iota
	// B3SingleHeader writes the header b3, for next hops that read only that.
	B3SingleHeader
	// B3BothEncodings writes all of them.
	B3BothEncodings
)

// WithB3Encoding sets how the propagator writes B3.
func WithB3Encoding(e Encoding) Option {
	return func(c *config) { c.encoding = e }
}

// WithB3TraceID64 makes the propagator write only the low 64 bits of the trace ID into B3, for
// peers that do not support 128 bits; x-trace-id has all 128. A trace ID whose low half is zero
// cannot be shortened and is written in full.
func WithB3TraceID64() Option {
	return func(c *config) { c.b3TraceID64 = true }
}

// WithDeferredSampled makes Extract treat B3 with IDs but without a sampling decision as sampled.
func WithDeferredSampled() Option {
	return func(c *config) { c.deferredSampled = true }
}

// WithDashes makes Extract also read a trace ID in the dashed form of a UUID, as Envoy and
// other proxies write x-request-id:
//
//	xtraceid.New(xtraceid.WithHeader("x-request-id"), xtraceid.WithDashes())
//
// Inject still writes 32 digits. That also keeps Envoy from changing the ID: it writes
// its own decision about tracing into the 13th digit of a dashed request ID, unless
// pack_trace_reason is false.
func WithDashes() Option {
	return func(c *config) { c.dashes = true }
}

// WithRandomFlag makes Extract apply [ContextWithRandomFlag] to the context of a request without a
// trace. Use it only if this process's ID generator returns trace IDs whose low 56 bits are
// random, as traceflake's do.
func WithRandomFlag() Option {
	return func(c *config) { c.randomFlag = true }
}
