package main

import (
	"context"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// work is what a handler does, with the spans it leaves.
type work func(ctx context.Context, tracer trace.Tracer) error

// step is one span that takes about so long by itself and then does its parts.
func step(name string, about time.Duration, opts []trace.SpanStartOption, parts ...work) work {
	return func(ctx context.Context, tracer trace.Tracer) (err error) {
		ctx, span := tracer.Start(ctx, name, opts...)
		defer span.End()
		if err := sleep(ctx, about/2+rand.N(about)); err != nil {
			span.SetStatus(codes.Error, err.Error())
			return err
		}
		for _, part := range parts {
			if err := part(ctx, tracer); err != nil {
				span.SetStatus(codes.Error, err.Error())
				return err
			}
		}
		return nil
	}
}

// chargeCard fails now and then; the request survives it.
func chargeCard(ctx context.Context, tracer trace.Tracer) error {
	ctx, span := tracer.Start(ctx, "charge card", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	if rand.N(20) == 0 {
		span.SetStatus(codes.Error, "issuer timed out")
	}
	return sleep(ctx, 3*time.Millisecond+rand.N(6*time.Millisecond))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
