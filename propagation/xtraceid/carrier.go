package xtraceid

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// headers are the values of the headers that a propagator reads and writes.
type headers [headerCount]string

const (
	ours = iota // the trace ID header; its name is an option
	b3Single
	b3TraceID
	b3SpanID
	b3Sampled
	b3Flags
	b3ParentSpanID // it is only read
	headerCount
)

// names are the names of headers: as text carriers expect them, and as a key of [http.Header].
type names struct{ text, http [headerCount]string }

func newNames(own string) names {
	n := names{text: [headerCount]string{own, "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-sampled",
		"x-b3-flags", "x-b3-parentspanid"}}
	for i, name := range n.text {
		n.http[i] = http.CanonicalHeaderKey(name)
	}
	return n
}

// read returns the first value of each header, and all values of the trace ID header, joined.
func (n *names) read(carrier propagation.TextMapCarrier) (in headers) {
	h, isHTTP := carrier.(propagation.HeaderCarrier)
	for i := range in {
		if !isHTTP {
			in[i] = carrier.Get(n.text[i])
		} else if values := h[n.http[i]]; len(values) > 0 {
			in[i] = values[0]
		}
	}
	if values := n.values(carrier); len(values) > 1 {
		in[ours] = strings.Join(values, ",")
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
			h[n.http[i]] = out[i : i+1 : i+1] // an appended value must not overwrite the next
		default:
			carrier.Set(n.text[i], value)
		}
	}
}
