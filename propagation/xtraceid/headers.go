package xtraceid

import (
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/propagation"
)

// header is the index of a header in [headers].
type header int

const (
	ours header = iota // the trace ID header; its name is an option
	b3Single
	b3TraceID
	b3SpanID
	b3ParentSpanID
	b3Sampled
	b3Flags
	headerCount
)

// b3Names are the names under which the b3 package reads and writes.
var b3Names = [headerCount]string{
	"", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags",
}

// headers are the values of the headers that a propagator reads and writes, and the carrier that
// the b3 package gets: it looks up each header in a carrier of its own spelling, which allocates
// for HTTP.
type headers [headerCount]string

func (h *headers) Get(name string) string {
	if i := slices.Index(b3Names[:], name); i > 0 {
		return h[i]
	}
	return ""
}

func (h *headers) Set(name, value string) {
	if i := slices.Index(b3Names[:], name); i > 0 {
		h[i] = value
	}
}

// Keys completes the interface; the b3 package does not call it.
func (h *headers) Keys() []string { return b3Names[1:] }

// withoutB3 reports whether no header of B3 has a value.
func (h headers) withoutB3() bool {
	h[ours] = ""
	return h == headers{}
}

// names are the names of headers: as text carriers expect them, and as a key of [http.Header].
type names struct{ text, http [headerCount]string }

func newNames(own string) names {
	n := names{text: b3Names}
	n.text[ours] = own
	for i, name := range n.text {
		n.http[i] = http.CanonicalHeaderKey(name)
	}
	return n
}

// read returns the first value of each header.
func (n *names) read(carrier propagation.TextMapCarrier) (in headers) {
	h, isHTTP := carrier.(propagation.HeaderCarrier)
	for i := range in {
		if !isHTTP {
			in[i] = carrier.Get(n.text[i])
		} else if values := h[n.http[i]]; len(values) > 0 {
			in[i] = values[0]
		}
	}
	return in
}

// valuesGetter is [propagation.ValuesGetter], which older versions of OpenTelemetry lack.
type valuesGetter interface{ Values(key string) []string }

// values returns all values of the trace ID header that the carrier can provide.
func (n *names) values(carrier propagation.TextMapCarrier) []string {
	switch c := carrier.(type) {
	case propagation.HeaderCarrier:
		return c[n.http[ours]]
	case valuesGetter:
		return c.Values(n.text[ours])
	}
	return nil
}

// write sets the headers that have a value. An HTTP header keeps a part of out.
func (n *names) write(carrier propagation.TextMapCarrier, out *headers) {
	h, isHTTP := carrier.(propagation.HeaderCarrier)
	for i, value := range out {
		switch {
		case value == "":
		case isHTTP:
			h[n.http[i]] = out[i : i+1 : i+1]
		default:
			carrier.Set(n.text[i], value)
		}
	}
}
