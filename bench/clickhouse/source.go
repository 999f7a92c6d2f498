package main

import (
	"context"
	_ "embed" // the SQL
	"fmt"
	"strings"
	"time"
)

var (
	//go:embed sql/source.sql
	createSource string
	//go:embed sql/generate.sql
	generate string
)

// day is the day that is queried.
var day = time.Date(2026, 10, 14, 0, 0, 0, 0, time.UTC)

const block = 100_000 // spans of an INSERT, as of a busy Collector

// dataset is the table source: three days of spans in the order in which they arrive.
type dataset struct {
	store
	spans, ofDay int // in all, and of the day that is queried
}

func newDataset(ctx context.Context, spans int) (*dataset, error) {
	s, err := open(ctx)
	if err != nil {
		return nil, err
	}
	d := &dataset{store: s}
	statements := []string{createSource}
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
	if err := d.Exec(ctx, statements...); err != nil {
		return nil, err
	}
	return d, d.scan(ctx, fmt.Sprintf("SELECT count(), countIf(toDate(Timestamp, 'UTC') = '%s') "+
		"FROM source", day.Format(time.DateOnly)), &d.spans, &d.ofDay)
}

const columns = "Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, " +
	"ResourceAttributes, SpanAttributes, Duration, StatusCode, StatusMessage, " +
	"Events.Timestamp, Events.Name, Events.Attributes"

// batch returns a query for some spans, random percent of which have random trace IDs.
func batch(random, from, count int) string {
	id := fmt.Sprintf("if(h1 %% 100 < %d, lower(hex(reverse(reinterpretAsFixedString(h1)))) || "+
		"lower(hex(reverse(reinterpretAsFixedString(h2)))), "+
		"assumeNotNull(traceIDAt(fromUnixTimestamp64Milli(ms), 0, h2))) AS TraceId", random)
	return fmt.Sprintf("SELECT %s FROM source WHERE _part_starting_offset + _part_offset >= %d "+
		"AND _part_starting_offset + _part_offset < %d",
		strings.Replace(columns, "TraceId", id, 1), from, from+count)
}

// fill stores all spans in a layout, block by block, and merges them.
func (d *dataset) fill(ctx context.Context, l layout, random int) error {
	if err := d.create(ctx, l); err != nil {
		return err
	}
	for from := 0; from < d.spans; from += block {
		if err := d.Exec(ctx, "INSERT INTO spans ("+columns+") "+batch(random, from, block)+
			" SETTINGS max_threads = 1, max_insert_threads = 1"); err != nil {
			return err
		}
	}
	return d.merge(ctx)
}
