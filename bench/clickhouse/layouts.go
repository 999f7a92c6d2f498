package main

import (
	_ "embed" // the SQL
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/traceflake/traceflake/clickhouse"
)

// table is the name of the table of spans in every layout.
const table = "spans"

// layout is a way to store spans.
type layout struct {
	Name   string
	schema clickhouse.Schema // for our queries
	theirs bool              // the table is the exporter's
	// elements are added to the exporter's table.
	elements string
	// change replaces texts in the statements: old and new in turn.
	change []string
}

var (
	//go:embed sql/collector.sql
	collectorTable string
	//go:embed sql/lookup.sql
	lookupTable string
)

// exporter is the layout to which the others are compared: the table of the Collector's exporter,
// with its lookup table.
var exporter = layout{Name: "exporter", schema: ours, theirs: true}

var ours = clickhouse.Schema{Table: table}

// layouts lists all layouts.
var layouts = []layout{
	exporter,
	{Name: "ours", schema: ours},
	{Name: "projection", schema: ours, theirs: true,
		elements: "PROJECTION by_trace (SELECT * ORDER BY TraceId)"},
	{Name: "light projection", schema: ours, theirs: true,
		elements: "PROJECTION by_trace (SELECT TraceId, _part_offset ORDER BY TraceId)"},
}

// named returns the layouts with these names, separated by semicolons.
func named(names string) (all []layout, err error) {
	for name := range strings.SplitSeq(names, ";") {
		i := slices.IndexFunc(layouts, func(l layout) bool { return l.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no layout is called %q", name)
		}
		all = append(all, layouts[i])
	}
	return all, nil
}

// statements returns the statements that create the tables.
func (l layout) statements() (all []string, err error) {
	if l.theirs {
		spans := strings.Replace(collectorTable, "GRANULARITY 1\n)",
			"GRANULARITY 1"+strings.TrimSuffix(",\n    "+l.elements, ",\n    ")+"\n)", 1)
		all = strings.Split(strings.ReplaceAll(spans+";\n"+lookupTable, "{table}", table), ";\n")
	}
	if !l.theirs {
		own, err := l.schema.Statements()
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	text := strings.Join(all, "\x00")
	changed := strings.NewReplacer(l.change...).Replace(text)
	if len(l.change) > 0 && changed == text {
		return nil, fmt.Errorf("%s: the statements have nothing to replace", l.Name)
	}
	return strings.Split(changed, "\x00"), nil
}

// traces returns our query for traces, or that of the exporter's documentation, which finds their
// times in the lookup table first. A projection needs no times.
func (l layout) traces(ids ...[16]byte) string {
	if !l.theirs {
		return bind(clickhouse.Traces(l.schema, ids))
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = "'" + hex.EncodeToString(id[:]) + "'"
	}
	where := "TraceId IN (" + strings.Join(texts, ", ") + ")"
	query := "SELECT * FROM " + table + " WHERE " + where
	if l.elements == "" {
		const times = "FROM " + table + "_trace_id_ts WHERE "
		query += "\nAND Timestamp >= (SELECT min(Start) " + times + where +
			")\nAND Timestamp <= (SELECT max(End) + 1 " + times + where + ")"
	}
	return query + "\nORDER BY TraceId, Timestamp, SpanId"
}

// bare returns the query with which HyperDX finds a trace.
func bare(id [16]byte) string {
	return fmt.Sprintf("SELECT * FROM %s WHERE TraceId = '%x'", table, id)
}

// bind puts the values into the text. The queries here are valid by construction.
func bind(q clickhouse.Query, err error) string {
	if err != nil {
		panic(err)
	}
	for _, p := range q.Params {
		quoted := "'" + p.Value + "'"
		q.SQL = strings.NewReplacer("{"+p.Name+":String}", quoted, "{"+p.Name+":Array(String)}",
			p.Value,
			"{"+p.Name+":DateTime64(9, 'UTC')}", "toDateTime64("+quoted+
				", 9, 'UTC')").Replace(q.SQL)
	}
	return q.SQL
}
