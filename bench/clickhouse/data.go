package main

import (
	"context"
	_ "embed" // the SQL
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
)

var (
	//go:embed sql/source.sql
	createSource string
	//go:embed sql/generate.sql
	generate string
	//go:embed sql/collector.sql
	collectorTable string
	//go:embed sql/lookup.sql
	lookupTable string
)

// day is the one that is queried.
var day = time.Date(2026, 10, 14, 0, 0, 0, 0, time.UTC)

const (
	table = "spans"
	block = 100_000 // spans of an INSERT, as of a busy Collector
)

// dataset is the table source: three days of spans in the order in which they arrive.
type dataset struct {
	*servers.Engine
	spans, day int // in all, and of the day that is queried
}

func newDataset(ctx context.Context, spans int) (*dataset, error) {
	e, err := servers.ClickHouse(ctx)
	if err != nil {
		return nil, err
	}
	d := &dataset{Engine: e}
	statements, err := clickhouse.Schema{Table: "unused"}.Statements() // for the functions
	if err != nil {
		return nil, err
	}
	for i, share := range []int{20, 20, 60} {
		start, traces := day.AddDate(0, 0, i-2), spans*share/100/8
		for from := 0; from < traces; from += block / 8 {
			statements = append(statements,
				strings.NewReplacer("{seed}", fmt.Sprint(i+1), "{start}",
					fmt.Sprint(start.UnixMilli()),
					"{traces}", fmt.Sprint(traces), "{from}", fmt.Sprint(from), "{count}",
					fmt.Sprint(min(block/8, traces-from))).Replace(generate))
		}
	}
	if err := d.Exec(ctx, slices.Insert(statements, 0, createSource)...); err != nil {
		return nil, err
	}
	if err := d.scan(ctx, "SELECT count() FROM source", &d.spans); err != nil {
		return nil, err
	}
	return d, d.scan(ctx,
		fmt.Sprintf("SELECT count() FROM source WHERE toDate(Timestamp, 'UTC') = '%s'",
			day.Format(time.DateOnly)), &d.day)
}

// scan reads the only value of a query.
func (d *dataset) scan(ctx context.Context, query string, into any) error {
	r, err := d.Query(ctx, query)
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(r.Rows[0][0], into)
	return err
}

// create replaces the table by an empty one of a layout.
func (d *dataset) create(ctx context.Context, l layout) error {
	statements := []string{"DROP VIEW IF EXISTS spans_trace_id_ts_mv SYNC",
		"DROP TABLE IF EXISTS spans_trace_id_ts SYNC",
		"DROP VIEW IF EXISTS spans_outliers_mv SYNC", "DROP TABLE IF EXISTS spans_outliers SYNC",
		"DROP TABLE IF EXISTS spans SYNC"}
	exporters := strings.Split(strings.ReplaceAll(collectorTable+";\n"+lookupTable, "{table}",
		table), ";\n")
	switch l.Name {
	case exporter.Name:
		return d.Exec(ctx, append(statements, exporters...)...)
	case "overlay":
		views, err := schemas[l.Name].DropLookup()
		if err != nil {
			return err
		}
		statements = append(append(statements, exporters[0]), views...)
	}
	all, err := schemas[l.Name].Statements()
	if err != nil {
		return err
	}
	return d.Exec(ctx, append(statements, all...)...)
}

// load stores all spans block by block, merges them, and returns the CPU seconds
// that this process, in which the engine runs, has used.
func (d *dataset) load(ctx context.Context, l layout, block int) (seconds float64, parts int,
	err error) {
	const columns = "SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, ResourceAttributes, " +
		"SpanAttributes, Duration, StatusCode, StatusMessage, Events.Timestamp, Events.Name, " +
		"Events.Attributes"
	id := fmt.Sprintf("if(h1 %% 100 < %d, lower(hex(reverse(reinterpretAsFixedString(h1)))) || "+
		"lower(hex(reverse(reinterpretAsFixedString(h2)))), "+
		"assumeNotNull(traceIDAt(fromUnixTimestamp64Milli(ms), 0, h2)))", l.Random)
	if err := d.create(ctx, l); err != nil {
		return 0, 0, err
	}
	start := used()
	for from := 0; from < d.spans; from += block {
		if err := d.Exec(ctx,
			fmt.Sprintf(
				`INSERT INTO spans (Timestamp, TraceId, %[1]s) SELECT Timestamp, %[2]s, %[1]s FROM source
			WHERE _part_starting_offset + _part_offset >= %[3]d AND _part_starting_offset + _part_offset < %[4]d SETTINGS max_threads = 1, max_insert_threads = 1`,
				columns, id, from, from+block)); err != nil {
			return 0, 0, err
		}
	}
	if err := d.scan(ctx, "SELECT count() FROM system.parts WHERE active AND database = "+
		"currentDatabase() AND table = 'spans'", &parts); err != nil {
		return 0, 0, err
	}
	second := map[string]string{"exporter": "spans_trace_id_ts", "ours": "spans_outliers",
		"overlay": "spans"}[l.Name]
	err = d.Exec(ctx, "OPTIMIZE TABLE spans FINAL", "OPTIMIZE TABLE "+second+" FINAL")
	return used() - start, parts, err
}

func used() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
