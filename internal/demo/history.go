package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

// chunk is how many traces one statement makes.
const chunk = 25_000

// Four traces have 33 spans on average: one is a checkout, of 15 spans; the others have up to 11
// spans of services that are not here.
const (
	fourTraces = 33
	shortest   = 10 * time.Minute // of a history
)

// merge merges the parts of each partition, as far as ClickHouse can: parts without the projection
// of root spans, of blocks that have none, stay apart from the others. New spans are in small parts
// at first, in which everything is found soon, whatever the order.
func (f *finder) merge(ctx context.Context) error {
	for _, table := range []string{"otel_traces", exporterTable} {
		if _, err := f.engine.Query(ctx, "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
			return fmt.Errorf("ClickHouse: merge: %w", err)
		}
	}
	f.merged = true
	return nil
}

// fill stores traces between midnight UTC and until, made by ClickHouse itself, in both tables.
// Both have a partition for each day: a history of two days would leave the second one nearly
// empty in the small hours. The traces have IDs like ours: their time and a number in the clear,
// and 64 random bits. Skip indexes are left for merge to make.
func (f *finder) fill(ctx context.Context, spans int, until time.Time, step func(spans int)) error {
	from := until.Truncate(day)
	if earliest := until.Add(-shortest); earliest.Before(from) { // just after midnight
		from = earliest
	}
	traces := max(spans*4/fourTraces, 1)
	const make = `INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName,
		ResourceAttributes, SpanAttributes, Duration, StatusCode)
	SELECT fromUnixTimestamp64Nano(ms * 1000000 + toInt64(if(i = 0, 0, h %% 500000000))),
		traceIDAt(fromUnixTimestamp64Milli(ms), 0, cityHash64(n, 1, %[4]d)),
		lower(hex(reverse(reinterpretAsFixedString(cityHash64(n, i, 2, %[4]d))))),
		if(i = 0, '', lower(hex(reverse(reinterpretAsFixedString(cityHash64(n, toUInt8(0), 2, %[4]d)))))),
		if(ours, ['POST /checkout', 'authenticate', 'load session', 'validate cart', 'HTTP POST', 'render receipt',
			'POST /orders', 'reserve stock', 'price order', 'load prices', 'apply discounts', 'compute tax',
			'charge card', 'insert order', 'publish order.created'][1 + i],
			concat(['GET', 'POST', 'SELECT', 'publish'][1 + route %% 4], ' /', toString(route))),
		['Server', 'Client', 'Internal'][1 + bitShiftRight(h, 16) %% 3],
		service,
		map('service.name', service, 'k8s.pod.name', concat(service, '-', lower(hex(h %% 1000)))),
		map('http.route', concat('/api/', toString(route)), 'user.id', toString(cityHash64(n) %% 100000)),
		toUInt64(exp(10 + 8 * ((h %% 1000003) / 1000003))),
		if(h %% 50 = 0, 'Error', 'Unset')
	FROM (
		SELECT number AS n, toInt64(%[1]d + number * %[2]d / %[3]d) AS ms,
			n %% 4 = 0 AS ours, toUInt8(arrayJoin(range(if(ours, 15, 1 + cityHash64(n, 3, %[4]d) %% 11)))) AS i, cityHash64(n, i, 4, %[4]d) AS h,
			bitShiftRight(h, 8) %% 8 AS route,
			multiIf(NOT ours, concat('service-', toString(bitShiftRight(h, 40) %% 50)), i < 6, 'edge', 'orders') AS service
		FROM numbers(%[5]d, %[6]d)
	) SETTINGS materialize_skip_indexes_on_insert = 0`
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(runtime.NumCPU(), 4)) // each INSERT writes with one thread
	for first := 0; first < traces; first += chunk {
		n := min(chunk, traces-first)
		sql := fmt.Sprintf(make, from.UnixMilli(), until.Sub(from).Milliseconds(), traces, until.UnixNano(), first, n)
		group.Go(func() error {
			if _, err := f.engine.Query(ctx, sql); err != nil {
				return fmt.Errorf("ClickHouse: history: %w", err)
			}
			step(n * fourTraces / 4)
			return nil
		})
	}
	return group.Wait()
}
