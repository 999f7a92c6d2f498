package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// costs are what ClickHouse reports to have read for one query on our table and on the exporter's.
type costs struct {
	What string
	Rows []costRow
}

// costRow is one kind of cost in both tables.
type costRow struct {
	Kind, Format   string
	Ours, Exporter float64
}

// Share returns the length of a bar for v, in percent of the longer one.
func (r costRow) Share(v float64) int {
	if v == 0 {
		return 0
	}
	return max(int(100*v/max(r.Ours, r.Exporter)+0.5), 1)
}

// measure runs a query, with %s in place of the table, on both tables.
func (f *finder) measure(ctx context.Context, what, query string) (costs, error) {
	ours, err := f.cost(ctx, fmt.Sprintf(query, "otel_traces"))
	if err != nil {
		return costs{}, err
	}
	exporter, err := f.cost(ctx, fmt.Sprintf(query, exporterTable))
	return costs{what, []costRow{
		{"granules", "%.0f", ours.granules, exporter.granules},
		{"megabytes", "%.1f", ours.megabytes, exporter.megabytes},
		{"milliseconds", "%.1f", ours.milliseconds, exporter.milliseconds},
	}}, err
}

type cost struct{ granules, megabytes, milliseconds float64 } // uncompressed

// cost runs a query three times. Each run reads the same amount; the shortest time is the least
// disturbed by other load.
func (f *finder) cost(ctx context.Context, query string) (c cost, err error) {
	f.measuring.Lock()
	defer f.measuring.Unlock()
	shortest := time.Duration(1<<63 - 1)
	for range 3 {
		before, err := f.selectedMarks(ctx)
		if err != nil {
			return c, err
		}
		result, err := f.engine.Query(ctx, query)
		if err != nil {
			return c, err
		}
		after, err := f.selectedMarks(ctx)
		if err != nil {
			return c, err
		}
		shortest = min(shortest, result.Elapsed)
		c = cost{after - before, float64(result.BytesRead) / 1e6, shortest.Seconds() * 1e3}
	}
	return c, nil
}

// selectedMarks returns how many granules ClickHouse has read since it started.
func (f *finder) selectedMarks(ctx context.Context) (float64, error) {
	r, err := f.engine.Query(ctx, "SELECT sum(value) FROM system.events WHERE event = 'SelectedMarks'")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(r.Rows[0][0], 64)
}

// conditions describes the state in which the costs are measured.
func (f *finder) conditions(ctx context.Context) (string, error) {
	const parts = `SELECT sumIf(rows, table = 'otel_traces'), countIf(table = 'otel_traces'), countIf(table = '` + exporterTable + `')
		FROM system.parts WHERE active AND database = currentDatabase()`
	r, err := f.engine.Query(ctx, parts)
	if err != nil {
		return "", err
	}
	row := r.Rows[0]
	text := fmt.Sprintf("Each table holds %s spans. Parts: %s sorted by trace ID, %s in the Collector's schema. ", row[0], row[1], row[2]) +
		"A granule is 512 spans in the first and 8192 in the second. ClickHouse counted the granules and uncompressed bytes; milliseconds are the shortest of three runs."
	if f.merged {
		text += " OPTIMIZE FINAL ran first; without it ClickHouse merges the parts later in the background. " +
			"In a small part, one new trace costs about the same in both."
	}
	return text, nil
}

// recent measures a query for 100 traces of the last five minutes, such as for a list of IDs from
// a log. The title has their number.
func (f *finder) recent(ctx context.Context) (costs, error) {
	var ids []string
	const sample = `SELECT DISTINCT TraceId FROM otel_traces
		WHERE TraceId BETWEEN traceIDMin(now64(3) - INTERVAL 5 MINUTE) AND traceIDMax(now64(3))
		ORDER BY cityHash64(TraceId) LIMIT 100`
	r, err := f.engine.Query(ctx, sample)
	if err != nil {
		return costs{}, err
	}
	for _, row := range r.Rows {
		if id, err := trace.TraceIDFromHex(row[0]); err == nil {
			ids = append(ids, "'"+id.String()+"'")
		}
	}
	if len(ids) == 0 {
		return costs{}, nil
	}
	return f.measure(ctx, fmt.Sprintf("%d traces of the last five minutes", len(ids)),
		"SELECT * FROM %s WHERE TraceId IN ("+strings.Join(ids, ",")+")")
}
