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

// reason is the cause of dropping a grant before its end.
type reason string

const (
	clockGap     reason = "clock_gap"           // the clocks diverged
	clockBehind  reason = "clock_behind"        // the clock fell too far behind the last ID
	contradicted reason = "store_contradiction" // the store lacks what it acknowledged
	cloned       reason = "cloned"              // a copy of this process holds the same grant
	restored     reason = "restored"            // the machine was restored from a snapshot
	taken        reason = "taken"               // the block was granted again
)

// outcomes are the values of error.type: of success, and of the known errors.
var outcomes = []struct {
	err  error
	name string
}{
	{nil, ""},
	{ErrBeginning, "beginning"},
	{ErrNoFreeNode, "no_free_node"},
	{ErrClockAhead, "clock_ahead"},
	{ErrLost, "lost"},
	{ErrNoStore, "no_store"},
	{ErrHistory, "history"},
	{ErrMoved, "moved"},
	{ErrContradicted, "contradicted"},
	{ErrWrongSecret, "wrong_secret"},
	{ErrKeyless, "keyless"},
	{ErrSchemaVersion, "schema_version"},
	{ErrInvalidRequest, "invalid_request"},
	{ErrMisconfigured, "misconfigured"},
	{ErrDiskFull, "disk_full"},
	{ErrUnavailable, "unavailable"},
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

// series identifies what is counted: requests by operation and outcome, drops and begun histories
// by reason.
type series struct {
	operation string // describe, acquire, renew, get or begin
	outcome   string // "" for success
	reason    reason // of a drop
	history   string // the reason of a begun history
}

func (s series) attributes() metric.MeasurementOption {
	switch {
	case s.reason != "":
		return metric.WithAttributes(
			attribute.String("traceflake.lease.drop.reason", string(s.reason)))
	case s.history != "":
		return metric.WithAttributes(
			attribute.String("traceflake.lease.history.reason", s.history))
	}
	attrs := []attribute.KeyValue{attribute.String("traceflake.lease.operation", s.operation)}
	if s.outcome != "" {
		attrs = append(attrs, attribute.String("error.type", s.outcome))
	}
	return metric.WithAttributes(attrs...)
}

// counts are a Keeper's counters. They are counted here and read on collection, so that events
// before a meter provider is set are not lost.
type counts struct {
	mu sync.Mutex
	of map[series]int64
}

// newCounts returns counters with the series that exist from the start, at 0: an alert on a rate
// misses the first count of a series that begins with it. In these series a single count matters.
// Alerts on other requests are about failures that last.
func newCounts() *counts {
	c := &counts{of: map[series]int64{
		{operation: "acquire", outcome: "no_free_node"}: 0,
		{history: Moved}:        0,
		{history: Contradicted}: 0,
	}}
	for _, why := range []reason{clockGap, clockBehind, contradicted, cloned, restored, taken} {
		c.of[series{reason: why}] = 0
	}
	return c
}

func (c *counts) add(s series) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[s]++
}

// register registers the Keeper's metrics; unregistering the result ends them.
func (k *Keeper) register(mp metric.MeterProvider) (metric.Registration, error) {
	m := mp.Meter(scope, metric.WithInstrumentationVersion(version.Library()))
	requests, err1 := m.Int64ObservableCounter("traceflake.lease.requests",
		metric.WithUnit("{request}"),
		metric.WithDescription("Requests to the lease store, by operation and outcome."))
	drops, err2 := m.Int64ObservableCounter("traceflake.lease.drops", metric.WithUnit("{grant}"),
		metric.WithDescription("Grants dropped before their end, by reason."))
	histories, err7 := m.Int64ObservableCounter("traceflake.lease.histories",
		metric.WithUnit("{history}"),
		metric.WithDescription("Histories of the store that this process has begun, by reason."))
	remaining, err3 := m.Float64ObservableGauge("traceflake.lease.remaining", metric.WithUnit("s"),
		metric.WithDescription(
			"Time until the lease held ends; IDs can be generated for so long without the store."))
	ttl, err4 := m.Float64ObservableGauge("traceflake.lease.ttl", metric.WithUnit("s"),
		metric.WithDescription("Length of the leases that the process requests."))
	behind, err5 := m.Float64ObservableGauge("traceflake.lease.clock_behind",
		metric.WithUnit("s"), metric.WithDescription(
			"How far the clock is behind the store's, or 0 if that is less than a minute."))
	blocks, err6 := m.Int64ObservableUpDownCounter("traceflake.lease.blocks",
		metric.WithUnit("{block}"),
		metric.WithDescription("Blocks of nodes held."))
	all, err8 := m.Int64ObservableGauge("traceflake.lease.store.blocks", metric.WithUnit("{block}"),
		metric.WithDescription("Blocks of nodes that the store has."))
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return nil, err
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		n, left := int64(0), time.Duration(0)
		if t := k.state.Load().term; t != nil {
			n, left = 1, max(t.end().Sub(k.cfg.clock().wall), 0)
		}
		o.ObserveInt64(blocks, n)
		if n := k.blocks.Load(); n > 0 { // the store has been described
			o.ObserveInt64(all, n)
		}
		o.ObserveFloat64(remaining, left.Seconds())
		o.ObserveFloat64(ttl, time.Duration(k.ttl.Load()).Seconds())
		o.ObserveFloat64(behind, time.Duration(k.behind.Load()).Seconds())
		counts := k.counts
		counts.mu.Lock()
		defer counts.mu.Unlock()
		for s, n := range counts.of {
			counter := requests
			switch {
			case s.reason != "":
				counter = drops
			case s.history != "":
				counter = histories
			}
			o.ObserveInt64(counter, n, s.attributes())
		}
		return nil
	}, requests, drops, histories, remaining, ttl, behind, blocks, all)
}
