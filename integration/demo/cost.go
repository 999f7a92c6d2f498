package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// cost is what ClickHouse reports to have read for a query.
type cost struct {
	granules, bytes uint64 // bytes are uncompressed
	took            time.Duration
}

// costs are those of one query on our table and on the exporter's table.
type costs struct {
	what           string
	ours, exporter cost
}

// measure runs a query, with %s in place of the table, on both tables.
func (f *finder) measure(ctx context.Context, what, query string) (c costs, err error) {
	c.what = what
	if c.ours, err = f.cost(ctx, fmt.Sprintf(query, "otel_traces")); err != nil {
		return c, err
	}
	c.exporter, err = f.cost(ctx, fmt.Sprintf(query, exporterTable))
	return c, err
}

// cost runs a query three times. Each run reads the same amount; the shortest time is the least
// disturbed by other load.
func (f *finder) cost(ctx context.Context, query string) (c cost, err error) {
	f.measuring.Lock()
	defer f.measuring.Unlock()
	for i := range 3 {
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
		if i == 0 || result.Elapsed < c.took {
			c.took = result.Elapsed
		}
		c.granules, c.bytes = after-before, result.BytesRead
	}
	return c, nil
}

// selectedMarks returns how many granules ClickHouse has read since it started.
func (f *finder) selectedMarks(ctx context.Context) (uint64, error) {
	r, err := f.engine.Query(ctx, "SELECT sum(value) FROM system.events WHERE event = 'SelectedMarks'")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(r.Rows[0][0], 10, 64)
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

// costRow is one kind of cost in both tables, with bars as shares of the larger one.
type costRow struct {
	Kind, Ours, Exporter     string
	OursShare, ExporterShare int
}

func (c costs) rows() []costRow {
	row := func(kind string, ours, exporter float64, text func(float64) string) costRow {
		most := max(ours, exporter)
		share := func(v float64) int {
			if most == 0 {
				return 0
			}
			return max(int(100*v/most+0.5), 1)
		}
		return costRow{kind, text(ours), text(exporter), share(ours), share(exporter)}
	}
	whole := func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
	return []costRow{
		row("granules", float64(c.ours.granules), float64(c.exporter.granules), whole),
		row("megabytes", float64(c.ours.bytes), float64(c.exporter.bytes),
			func(v float64) string { return fmt.Sprintf("%.1f", v/1e6) }),
		row("milliseconds", float64(c.ours.took), float64(c.exporter.took),
			func(v float64) string { return fmt.Sprintf("%.1f", v/1e6) }),
	}
}

// costs draws both tables side by side.
func (s *screen) costs(c costs) {
	cells := max(min((s.width-14-2*10)/2, 30), 4)
	bar := func(st style, percent int) string {
		n := max(percent*cells/100, 1)
		return s.paint(st, strings.Repeat("█", n)) + strings.Repeat(" ", cells-n)
	}
	s.printf("  %s\n  %-12s %s  %s\n", s.paint(bold, c.what), "",
		pad("sorted by trace ID", cells+8), "the Collector's own schema")
	for _, r := range c.rows() {
		s.printf("  %-12s %7s %s  %7s %s\n", r.Kind, r.Ours, bar(blue, r.OursShare),
			r.Exporter, strings.TrimRight(bar(magenta, r.ExporterShare), " "))
	}
	s.printf("\n")
}
