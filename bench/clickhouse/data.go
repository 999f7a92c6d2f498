package main

import (
	"context"
	_ "embed" // the SQL
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
)

var (
	//go:embed sql/source.sql
	createSource string
	//go:embed sql/generate.sql
	generate string
)

// day is when the data begins.
var day = time.Date(2026, 10, 14, 0, 0, 0, 0, time.UTC)

// block is how many spans go into an INSERT, as a busy Collector's batches do.
const block = 100_000

// dataset is one day of spans in the order in which they arrive.
type dataset struct {
	*servers.Engine
	spans int // there are, about what was asked for
}

// newDataset fills the table source. The same seed gives the same spans.
func newDataset(ctx context.Context, e *servers.Engine, spans, seed int, bar *bar) (*dataset, error) {
	statements, err := clickhouse.Schema{Layout: clickhouse.Overlay}.Statements() // the functions
	if err != nil {
		return nil, err
	}
	for _, statement := range append(statements, "DROP TABLE IF EXISTS source SYNC", createSource) {
		if _, err := e.Query(ctx, statement); err != nil {
			return nil, err
		}
	}
	traces, step := spans/8, block/8
	for from := 0; from < traces; from += step {
		_, err := e.Query(ctx, strings.NewReplacer(
			"{seed}", fmt.Sprint(seed), "{start}", fmt.Sprint(day.UnixMilli()), "{traces}", fmt.Sprint(traces),
			"{from}", fmt.Sprint(from), "{count}", fmt.Sprint(min(step, traces-from))).Replace(generate))
		if err != nil {
			return nil, err
		}
		bar.show(from+step, traces)
	}
	d := &dataset{Engine: e}
	_, err = scan(ctx, e, "SELECT count() FROM source", &d.spans)
	return d, err
}

// ids are expressions that make each trace's ID from the columns of source.
var ids = map[string]string{
	"ours":   "assumeNotNull(traceIDAt(fromUnixTimestamp64Milli(ms), 0, h2))",
	"random": "lower(hex(reverse(reinterpretAsFixedString(h1)))) || lower(hex(reverse(reinterpretAsFixedString(h2))))",
	"UUIDv7": "substring(lower(hex(reverse(reinterpretAsFixedString(ms)))), 5) || '7' || substring(lower(hex(reverse(reinterpretAsFixedString(h1)))), 1, 3)" +
		" || ['8','9','a','b'][1 + h1 % 4] || substring(lower(hex(reverse(reinterpretAsFixedString(h2)))), 2)",
	"ULID": "substring(lower(hex(reverse(reinterpretAsFixedString(ms)))), 5) || substring(lower(hex(reverse(reinterpretAsFixedString(h1)))), 1, 4)" +
		" || lower(hex(reverse(reinterpretAsFixedString(h2))))",
}

const copied = "SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, ResourceAttributes, SpanAttributes, Duration, StatusCode, StatusMessage"

// insert stores all spans in a table with one kind of ID, block by block, two
// at a time, as from two Collectors.
func (d *dataset) insert(ctx context.Context, table, kind string, bar *bar) error {
	var next, done atomic.Int64
	var showing sync.Mutex
	work := func() error {
		for {
			from := int(next.Add(block)) - block
			if from >= d.spans {
				return nil
			}
			if err := d.insertBlock(ctx, table, kind, from, block); err != nil {
				return err
			}
			showing.Lock()
			bar.show(int(done.Add(block)), d.spans)
			showing.Unlock()
		}
	}
	other := make(chan error, 1)
	go func() { other <- work() }()
	return errors.Join(work(), <-other)
}

func (d *dataset) insertBlock(ctx context.Context, table, kind string, from, spans int) error {
	_, err := d.Query(ctx, fmt.Sprintf(`INSERT INTO %s (Timestamp, TraceId, %s) SELECT Timestamp, %s, %s FROM source
		WHERE _part_starting_offset + _part_offset >= %d AND _part_starting_offset + _part_offset < %d SETTINGS max_threads = 1, max_insert_threads = 1`,
		table, copied, ids[kind], copied, from, from+spans))
	return err
}

// scan reads the only row of a query.
func scan(ctx context.Context, e *servers.Engine, query string, into ...any) (servers.Result, error) {
	r, err := e.Query(ctx, query)
	if err != nil {
		return r, err
	}
	if len(r.Rows) != 1 || len(r.Rows[0]) != len(into) {
		return r, fmt.Errorf("%s: %d rows", query, len(r.Rows))
	}
	for i, value := range r.Rows[0] {
		if _, err := fmt.Sscan(value, into[i]); err != nil {
			return r, fmt.Errorf("%s: %q: %w", query, value, err)
		}
	}
	return r, nil
}
