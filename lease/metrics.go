package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/internal/version"
)

const scope = "github.com/traceflake/traceflake/lease"

// operation is a request to the store.
type operation int

const (
	describe operation = iota
	acquire
	renew
	get
	release
	operations
)

func (o operation) String() string {
	return [...]string{"describe", "acquire", "renew", "get", "release"}[o]
}

// outcomes are the values of error.type: success, the known errors, and others.
var outcomes = [...]struct {
	err  error
	name string
}{
	{nil, ""},
	{ErrNoFreeNode, "no_free_node"},
	{ErrClockAhead, "clock_ahead"},
	{ErrLost, "lost"},
	{ErrNoStore, "no_store"},
	{ErrReplaced, "replaced"},
	{ErrWrongSecret, "wrong_secret"},
	{ErrSchemaVersion, "schema_version"},
	{ErrInvalidRequest, "invalid_request"},
	{ErrMisconfigured, "misconfigured"},
	{context.DeadlineExceeded, "timeout"},
	{nil, "_OTHER"},
}

const noFreeNode = 1 // of outcomes

func outcome(err error) int {
	const success = 0
	if err == nil {
		return success
	}
	other := len(outcomes) - 1
	for i, known := range outcomes[:other] {
		if i != success && errors.Is(err, known.err) {
			return i
		}
	}
	return other
}

// counts are a Keeper's counters. They are counted here and read on collection,
// so that what happens before there is a meter provider is not lost.
type counts struct {
	requests [operations][len(outcomes)]atomic.Int64
	drops    [reasons]atomic.Int64
}

// request counts one request to the store.
func (c *counts) request(o operation, err error) { c.requests[o][outcome(err)].Add(1) }

// register registers the Keeper's metrics; unregistering the result ends them.
func (k *Keeper) register(mp metric.MeterProvider) (metric.Registration, error) {
	m := mp.Meter(scope, metric.WithInstrumentationVersion(version.Library()))
	var errs [4]error
	requests, err := m.Int64ObservableCounter("traceflake.lease.requests", metric.WithUnit("{request}"),
		metric.WithDescription("Requests to the lease store, by operation and outcome."))
	errs[0] = err
	drops, err := m.Int64ObservableCounter("traceflake.lease.drops", metric.WithUnit("{grant}"),
		metric.WithDescription("Grants dropped before their end, by reason."))
	errs[1] = err
	remaining, err := m.Float64ObservableGauge("traceflake.lease.remaining", metric.WithUnit("s"),
		metric.WithDescription("Time until the last lease held ends; IDs can be made for so long without the store."))
	errs[2] = err
	blocks, err := m.Int64ObservableUpDownCounter("traceflake.lease.blocks", metric.WithUnit("{block}"),
		metric.WithDescription("Blocks of nodes held."))
	errs[3] = err
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	observe := k.counts.observer(requests, drops)
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		held := k.held.Load().terms
		o.ObserveInt64(blocks, int64(len(held)))
		o.ObserveFloat64(remaining, k.remaining(held).Seconds())
		observe(o)
		return nil
	}, requests, drops, remaining, blocks)
}

// observer returns a function that reports the counters. An alert on a rate misses the first count
// of a series that begins with it, so the series of which a single count matters exist from the
// start, at 0: the drops, and Acquires without a free block. Other requests have no series before
// their first count: alerts on them are about failures that last.
func (c *counts) observer(requests, drops metric.Int64Observable) func(metric.Observer) {
	of := func(attrs ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attrs...))
	}
	var byOutcome [operations][len(outcomes)]metric.MeasurementOption
	for o := range operations {
		attrs := []attribute.KeyValue{attribute.String("traceflake.lease.operation", o.String())}
		for i, outcome := range outcomes {
			byOutcome[o][i] = of(attrs...)
			if outcome.name != "" {
				byOutcome[o][i] = of(append(attrs, attribute.String("error.type", outcome.name))...)
			}
		}
	}
	var byReason [reasons]metric.MeasurementOption
	for r := range reasons {
		byReason[r] = of(attribute.String("traceflake.lease.drop.reason", r.String()))
	}
	return func(observer metric.Observer) {
		for o := range c.requests {
			for i := range c.requests[o] {
				n := c.requests[o][i].Load()
				if fromStart := operation(o) == acquire && i == noFreeNode; n > 0 || fromStart {
					observer.ObserveInt64(requests, n, byOutcome[o][i])
				}
			}
		}
		for r := range c.drops {
			observer.ObserveInt64(drops, c.drops[r].Load(), byReason[r])
		}
	}
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
