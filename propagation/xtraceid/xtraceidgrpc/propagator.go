package xtraceidgrpc

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"
)

// Propagator returns a propagator for otelgrpc.WithPropagators that extracts like p, but from all
// values of a header: two different trace IDs are malformed, as over HTTP. otelgrpc itself provides
// only the first value. p is xtraceid's propagator, or a composite propagator that contains it.
func Propagator(p propagation.TextMapPropagator) propagation.TextMapPropagator {
	return propagator{p}
}

type propagator struct{ propagation.TextMapPropagator }

func (p propagator) Extract(
	ctx context.Context, carrier propagation.TextMapCarrier,
) context.Context {
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		carrier = values{carrier, md}
	}
	return p.TextMapPropagator.Extract(ctx, carrier)
}

// values is a [propagation.ValuesGetter].
type values struct {
	propagation.TextMapCarrier
	incoming metadata.MD
}

// Values returns the values of the call's metadata, unless the carrier is something else, such as
// a message that the call contains.
func (v values) Values(key string) []string {
	all, first := v.incoming.Get(key), v.Get(key)
	switch {
	case len(all) > 0 && all[0] == first:
		return all
	case first == "":
		return nil
	}
	return []string{first}
}
