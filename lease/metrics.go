package lease

import (
	"context"
	"errors"
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

// What is counted, and the first attribute of its series, after traceflake.lease.
const (
	requests  = "operation"
	drops     = "drop.reason"
	histories = "history.reason"
)

// series identifies what is counted.
type series struct {
	of      string // requests, drops or histories
	what    string // the value of the attribute: describe, acquire, renew, get, begin, or a reason
	outcome string // of a request: "" for success
}

// newCounts returns counters with the series that exist from the start, at 0: an alert on a rate
// misses the first count of a series that begins with it. In these series a single count matters.
// Alerts on other requests are about failures that last.
func newCounts() map[series]int64 {
	counts := map[series]int64{
		{requests, "acquire", "no_free_node"}: 0,
		{histories, Moved, ""}:                0,
		{histories, Contradicted, ""}:         0,
	}
	for _, why := range []reason{clockGap, clockBehind, contradicted, cloned, restored, taken} {
		counts[series{of: drops, what: string(why)}] = 0
	}
	return counts
}

func (k *Keeper) count(s series) {
	k.changing.Lock()
	defer k.changing.Unlock()
	k.counts[s]++
}

// register registers the Keeper's metrics; unregistering the result ends them.
func (k *Keeper) register(mp metric.MeterProvider) (metric.Registration, error) {
	const prefix = "traceflake.lease."
	m := mp.Meter(scope, metric.WithInstrumentationVersion(version.Library()))
	var all []metric.Observable
	var errs []error
	counter := func(name, unit, description string) metric.Int64ObservableCounter {
		c, err := m.Int64ObservableCounter(prefix+name, metric.WithUnit(unit),
			metric.WithDescription(description))
		all, errs = append(all, c), append(errs, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Float64ObservableGauge {
		g, err := m.Float64ObservableGauge(prefix+name, metric.WithUnit(unit),
			metric.WithDescription(description))
		all, errs = append(all, g), append(errs, err)
		return g
	}
	counters := map[string]metric.Int64ObservableCounter{
		requests: counter("requests", "{request}",
			"Requests to the lease store, by operation and outcome."),
		drops: counter("drops", "{grant}", "Grants dropped before their end, by reason."),
		histories: counter("histories", "{history}",
			"Histories of the store that this process has begun, by reason."),
	}
	remaining := gauge("remaining", "s",
		"Time until the lease held ends; IDs can be generated for so long without the store.")
	ttl := gauge("ttl", "s", "Length of the leases that the process requests.")
	behind := gauge("clock_behind", "s",
		"How far the clock is behind the store's, or 0 if that is less than a minute.")
	has := gauge("store.blocks", "{block}", "Blocks of nodes that the store has.")
	blocks, err := m.Int64ObservableUpDownCounter(prefix+"blocks", metric.WithUnit("{block}"),
		metric.WithDescription("Blocks of nodes held."))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s, held, left := k.current(), int64(0), time.Duration(0)
		if s.term != nil {
			held, left = 1, max(s.term.expires().Sub(k.cfg.clock().wall), 0)
		}
		o.ObserveInt64(blocks, held)
		if n := s.about.Blocks(); n > 0 { // the store has been described
			o.ObserveFloat64(has, float64(n))
		}
		o.ObserveFloat64(remaining, left.Seconds())
		o.ObserveFloat64(ttl, k.ttl().Seconds())
		o.ObserveFloat64(behind, s.behind.Seconds())
		k.changing.Lock()
		defer k.changing.Unlock()
		for c, n := range k.counts {
			attrs := []attribute.KeyValue{attribute.String(prefix+c.of, c.what)}
			if c.outcome != "" {
				attrs = append(attrs, attribute.String("error.type", c.outcome))
			}
			o.ObserveInt64(counters[c.of], n, metric.WithAttributes(attrs...))
		}
		return nil
	}, append(all, blocks)...)
}
