package xtraceid

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel"
)

// DefaultHeader is the name of the header that carries the trace ID.
const DefaultHeader = "x-trace-id"

// Option configures the propagator.
type Option interface{ propagator(*config) }

type config struct {
	header          string
	encoding        b3.Encoding
	b3TraceID64     bool
	deferredSampled bool
	dashes          bool
	randomFlag      bool
}

type option func(*config)

func (o option) propagator(c *config) { o(c) }

// HeaderOption is an option of the propagator and of responses; see [WithHeader].
type HeaderOption interface {
	Option
	ResponseOption
}

type header string

func (h header) propagator(c *config) { c.header = string(h) }

func (h header) response(c *responseConfig) { c.header = string(h) }

// WithHeader sets the name of the header that carries the trace ID, by default [DefaultHeader], in
// requests and responses. The name is used as given; carriers other than HTTP headers may be
// case-sensitive. A name that is not an HTTP field name (RFC 9110, section 5.6.2), which would make
// HTTP clients refuse the request, or that belongs to another propagation format, such as
// traceparent or X-B3-TraceId, is reported to [otel.Handle], and the default is used.
func WithHeader(name string) HeaderOption {
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
	return header(name)
}

// WithB3Encoding sets how B3 is written: [b3.B3MultipleHeader] (the default), [b3.B3SingleHeader]
// for next hops that read only the header b3, or both (combined with |). Both are always read.
// Any other encoding is reported to [otel.Handle], and the default is used.
func WithB3Encoding(e b3.Encoding) Option {
	if e == b3.B3Unspecified || e&^(b3.B3MultipleHeader|b3.B3SingleHeader) != 0 {
		otel.Handle(fmt.Errorf("xtraceid: unknown B3 encoding %d: "+
			"want b3.B3MultipleHeader, b3.B3SingleHeader or both; using the first", e))
		e = b3.B3MultipleHeader
	}
	return option(func(c *config) { c.encoding = e })
}

// WithB3TraceID64 makes the propagator write only the low 64 bits of the trace ID into B3, for
// peers that do not support 128 bits; x-trace-id has all 128. A trace ID whose low half is zero
// cannot be shortened and is written in full.
func WithB3TraceID64() Option {
	return option(func(c *config) { c.b3TraceID64 = true })
}

// WithDeferredSampled makes Extract treat B3 with IDs but without a sampling decision as sampled.
func WithDeferredSampled() Option {
	return option(func(c *config) { c.deferredSampled = true })
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
	return option(func(c *config) { c.dashes = true })
}

// WithRandomFlag makes Extract apply [ContextWithRandomFlag] to the context of a request without a
// trace. Use it only if this process's ID generator returns trace IDs whose low 56 bits are
// random, as traceflake's do.
func WithRandomFlag() Option {
	return option(func(c *config) { c.randomFlag = true })
}
