package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// work is what a handler does and the spans that it makes.
type work func(ctx context.Context, tracer trace.Tracer) error

// step is one span that takes about the given time by itself and then runs its parts.
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

var errIssuer = errors.New("issuer timed out")

// publish returns work that sends a message. Its span describes the message in an event and links
// to the previous message, which has its own trace.
func publish(topic string) work {
	var last atomic.Pointer[trace.SpanContext]
	return func(ctx context.Context, tracer trace.Tracer) error {
		options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(attribute.String("messaging.destination.name", topic))}
		if before := last.Load(); before != nil {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: *before,
				Attributes: []attribute.KeyValue{attribute.String("messaging.relation", "previous")}}))
		}
		ctx, span := tracer.Start(ctx, "publish "+topic, options...)
		defer span.End()
		own := span.SpanContext()
		last.Store(&own)
		span.AddEvent("message queued", trace.WithAttributes(attribute.Int("messaging.message.body.size", 200+rand.N(800))))
		return sleep(ctx, 500*time.Microsecond+rand.N(time.Millisecond))
	}
}

// chargeCard sometimes fails; the request continues.
func chargeCard(ctx context.Context, tracer trace.Tracer) error {
	ctx, span := tracer.Start(ctx, "charge card", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	if rand.N(20) == 0 {
		span.RecordError(errIssuer)
		span.SetStatus(codes.Error, errIssuer.Error())
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
