package main

import (
	_ "embed" // the SQL
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/clickhouse"
)

var (
	//go:embed sql/collector.sql
	collectorTable string
	//go:embed sql/lookup.sql
	lookupTable string
)

// layout is a table, the kind of IDs in it and the way to ask it.
type layout struct {
	Name, About string
	IDs         string
	create      func(table string) ([]string, error)
	ask         asker
	other       asker // a second way to ask, if not nil
	otherAbout  string
	main        bool // measured at every size
}

func owned(table string) ([]string, error) { return clickhouse.Schema{Table: table}.Statements() }

func collector(table string) ([]string, error) {
	return strings.Split(strings.ReplaceAll(collectorTable, "{table}", table), ";\n"), nil
}

func collectorWithLookup(table string) ([]string, error) {
	all, err := collector(table)
	return append(all, strings.Split(strings.ReplaceAll(lookupTable, "{table}", table), ";\n")...), err
}

// change edits the owned table's statements.
func change(old, replacement string) func(string) ([]string, error) {
	return func(table string) ([]string, error) {
		all, err := owned(table)
		changed := all[:0]
		for _, statement := range all {
			if strings.HasPrefix(statement, "CREATE TABLE") {
				edited := strings.Replace(statement, old, replacement, 1)
				if edited == statement {
					return nil, fmt.Errorf("the owned table has no %q to change", old)
				}
				statement = edited
			} else if strings.Contains(statement, "PROJECTION search") {
				continue // the check of the shape
			}
			changed = append(changed, statement)
		}
		return changed, err
	}
}

const searchProjection = `,
    PROJECTION search (
        SELECT TraceId, SpanKind, Duration, StatusCode
        ORDER BY ServiceName, SpanName, Timestamp
    )`

// layouts are what is compared. The first is what there is without this
// project, the second and the third are what it ships.
var layouts = []layout{
	{"collector", "the exporter's table and its lookup table", "random", collectorWithLookup, byLookup, byBloom, "the same, the bloom filter alone", true},
	{"overlay", "the exporter's table, the window from the ID", "ours", collector, bySchema(clickhouse.Overlay), nil, "", true},
	{"owned", "sorted by trace ID, projection for search", "ours", owned, bySchema(clickhouse.Owned), nil, "", true},
	{"owned", "the same with random IDs", "random", owned, randomOwned, nil, "", false},
	{"owned", "the same with UUIDv7", "UUIDv7", owned, randomOwned, nil, "", false},
	{"owned", "the same with ULID", "ULID", owned, randomOwned, nil, "", false},
	{"sorted", "sorted by trace ID, nothing for search", "ours", change(searchProjection, ""), bySchema(clickhouse.Owned), nil, "", false},
	{"covering", "sorted by trace ID, projection with the IDs of spans and parents, too", "ours",
		change("SELECT TraceId, SpanKind, Duration", "SELECT TraceId, SpanId, ParentSpanId, SpanKind, Duration"), bySchema(clickhouse.Owned), nil, "", false},
	{"bucket", "ten minutes of the ID's time, then service, name, time", "ours", func(table string) ([]string, error) {
		return change(columnsEnd+"ORDER BY TraceId", bucketEnd)(table)
	}, bySchema(clickhouse.Owned), nil, "", false},
}

const (
	columnsEnd = searchProjection + "\n) ENGINE = MergeTree\nPARTITION BY toDate(Timestamp)\n"
	bucketEnd  = `
) ENGINE = MergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (toStartOfTenMinutes(fromUnixTimestamp(toUInt32(intDiv(bitShiftRight(reinterpretAsUInt64(reverse(unhex(substring(TraceId, 1, 16)))), 23) + 1577836800000, 1000)))),
    ServiceName, SpanName, Timestamp)`
)
