package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/traceflake/traceflake/internal/version"
)

const scope = "github.com/traceflake/traceflake/lease"

// operation is a request to the store.
type operation string

const (
	describe operation = "describe"
	acquire  operation = "acquire"
	renew    operation = "renew"
	get      operation = "get"
	release  operation = "release"
)

// reason is why a grant was dropped before its end.
type reason string

const (
	clockGap     reason = "clock_gap"           // the clocks diverged
	clockBehind  reason = "clock_behind"        // the clock fell too far behind the last ID
	contradicted reason = "store_contradiction" // the store lacks what it acknowledged
	cloned       reason = "cloned"              // a copy of this process holds the same grant
	restored     reason = "restored"            // the machine was restored from a snapshot
	raisedAway   reason = "raised"              // an operator raised the store
	taken        reason = "taken"               // the block was granted again
)

// outcomes are the values of error.type: of success, and of the known errors.
var outcomes = []struct {
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
}

const otherOutcome = "_OTHER"

func outcome(err error) string {
	for _, known := range outcomes {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return otherOutcome
}

// requested is what requests are counted by.
type requested struct {
	operation operation
	outcome   string // "" for success
}

// counts are a Keeper's counters. They are counted here and read on collection, so that what happens
// before there is a meter provider is not lost.
type counts struct {
	mu       sync.Mutex
	requests map[requested]int64
	drops    map[reason]int64
}

// newCounts returns counters with the series that exist from the start, at 0. An alert on a rate
// misses the first count of a series that begins with it, so these are all of which a single count
// matters: the drops, and Acquires without a free block. Alerts on other requests are about failures
// that last.
func newCounts() *counts {
	return &counts{
		requests: map[requested]int64{{acquire, "no_free_node"}: 0},
		drops:    map[reason]int64{clockGap: 0, clockBehind: 0, contradicted: 0, cloned: 0, restored: 0, raisedAway: 0, taken: 0},
	}
}

// request counts one request to the store.
func (c *counts) request(o operation, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[requested{o, outcome(err)}]++
}

func (c *counts) drop(why reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops[why]++
}

func (c *counts) observe(o metric.Observer, requests, drops metric.Int64Observable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for series, n := range c.requests {
		attrs := []attribute.KeyValue{attribute.String("traceflake.lease.operation", string(series.operation))}
		if series.outcome != "" {
			attrs = append(attrs, attribute.String("error.type", series.outcome))
		}
		o.ObserveInt64(requests, n, metric.WithAttributes(attrs...))
	}
	for why, n := range c.drops {
		o.ObserveInt64(drops, n, metric.WithAttributes(attribute.String("traceflake.lease.drop.reason", string(why))))
	}
}

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
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		held := k.held.Load().terms
		o.ObserveInt64(blocks, int64(len(held)))
		o.ObserveFloat64(remaining, k.remaining(held).Seconds())
		k.counts.observe(o, requests, drops)
		return nil
	}, requests, drops, remaining, blocks)
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
