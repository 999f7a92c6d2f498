package xtraceid

import (
	"encoding/binary"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

type propagator struct {
	config
	names
	b3 propagation.TextMapPropagator
}

// New returns a propagator for the trace ID header and B3. It is safe for concurrent use.
func New(opts ...Option) propagation.TextMapPropagator {
	c := newConfig(opts)
	return &propagator{c, newNames(c.header), b3.New(b3.WithInjectEncoding(c.encoding))}
}

// Fields returns the keys that Inject may write, the trace ID header first.
func (p *propagator) Fields() []string {
	return append([]string{p.header}, p.b3.Fields()...)
}

// is64 reports whether id is a 64-bit trace ID, which the b3 package pads with zeros.
func is64(id trace.TraceID) bool {
	return binary.BigEndian.Uint64(id[:8]) == 0
}

// debugged is the key of the trace that B3's debug flag in a context belongs to, a trace.TraceID.
// The b3 package would send the flag with any other trace, too, such as one that begins because
// the caller's was refused.
type debugged struct{}
