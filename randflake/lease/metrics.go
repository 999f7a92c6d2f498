package lease

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const scope = "github.com/traceflake/traceflake/randflake/lease"

// meters are a Keeper's metrics. Making an ID updates none of them.
type meters struct {
	requests     metric.Int64Counter
	registration metric.Registration
}

func newMeters(k *Keeper, mp metric.MeterProvider) (*meters, error) {
	m := mp.Meter(scope)
	var errs [4]error
	requests, err := m.Int64Counter("traceflake.lease.requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests to the store of leases, by operation and outcome."))
	errs[0] = err
	remaining, err := m.Float64ObservableGauge("traceflake.lease.remaining", metric.WithUnit("s"),
		metric.WithDescription("Time until the last lease held ends; IDs can be made for so long without the store."))
	errs[1] = err
	blocks, err := m.Int64ObservableUpDownCounter("traceflake.lease.blocks", metric.WithUnit("{block}"),
		metric.WithDescription("Blocks of nodes held."))
	errs[2] = err
	drops, err := m.Int64ObservableCounter("traceflake.lease.drops", metric.WithUnit("{grant}"),
		metric.WithDescription("Grants dropped before their end, by reason."))
	errs[3] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	registration, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		held := k.held.Load().terms
		o.ObserveInt64(blocks, int64(len(held)))
		o.ObserveFloat64(remaining, k.remaining(held).Seconds())
		for r := range reasons {
			o.ObserveInt64(drops, k.drops[r].Load(), metric.WithAttributes(attribute.String("traceflake.lease.drop.reason", r.String())))
		}
		return nil
	}, remaining, blocks, drops)
	if err != nil {
		return nil, err
	}
	return &meters{requests: requests, registration: registration}, nil
}

func (m *meters) unregister() { _ = m.registration.Unregister() }

// request counts one request to the store.
func (m *meters) request(ctx context.Context, operation string, err error) {
	attrs := []attribute.KeyValue{attribute.String("traceflake.lease.operation", operation)}
	if err != nil {
		attrs = append(attrs, attribute.String("error.type", errorType(err)))
	}
	m.requests.Add(ctx, 1, metric.WithAttributes(attrs...))
}

func errorType(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{ErrNoFreeNode, "no_free_node"},
		{ErrClockAhead, "clock_ahead"},
		{ErrLost, "lost"},
		{ErrBlockSize, "block_size"},
		{ErrSchemaVersion, "schema_version"},
		{ErrInvalidRequest, "invalid_request"},
		{context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return "_OTHER"
}

// remaining is how long IDs can be made with the grants held.
func (k *Keeper) remaining(held []*term) time.Duration {
	now := k.cfg.clock.Now()
	var left time.Duration
	for _, t := range held {
		left = max(left, time.Unix(t.until.Load(), 0).Sub(now))
	}
	return left
}
