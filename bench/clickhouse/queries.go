package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// kinds of queries of a trace page.
const (
	oneTrace   = "one trace"
	manyTraces = "100 traces of 5 min"
	allTraces  = "all traces of 5 min"
	allSpans   = "all spans of 5 min"
	newest     = "newest 100 traces"
	searchHour = "search, 1 h"
	searchDay  = "search, 24 h"
)

var kinds = []string{oneTrace, manyTraces, allTraces, allSpans, newest, searchHour, searchDay}

// question is one query with its values.
type question struct {
	kind          string
	ids           [][16]byte
	from, to      time.Time
	service, name string
}

// asker turns a question into the statement to run.
type asker func(table string, q question) (string, error)

func bySchema(layout clickhouse.Layout) asker {
	return func(table string, q question) (string, error) {
		s := clickhouse.Schema{Table: table, Layout: layout}
		var query clickhouse.Query
		var err error
		switch q.kind {
		case oneTrace, manyTraces:
			query, err = clickhouse.Traces(s, q.ids)
		case allTraces:
			query, err = s.SpansOfTraces(q.from, q.to)
		case allSpans:
			query, err = s.Spans(q.from, q.to)
		case newest:
			query, err = s.Newest(q.from, q.to, [16]byte{}, 100)
		default:
			query, err = s.Search(clickhouse.Search{From: q.from, To: q.to, Service: q.service, Name: q.name, Limit: page})
		}
		return bind(query), err
	}
}

// withRandomIDs asks for IDs whose bounds the functions do not know.
func withRandomIDs(table string, q question) (string, error) {
	return bySchema(clickhouse.ServiceFirst)(table, withoutBounds(q))
}

// withoutBounds: random IDs have no range, so that all traces of a time are at
// best the spans of that time.
func withoutBounds(q question) question {
	if q.kind == allTraces {
		q.kind = allSpans
	}
	return q
}

// byLookup returns the query of the exporter's documentation.
func byLookup(table string, q question) (string, error) {
	run, err := byBloom(table, q)
	if err != nil || q.kind != oneTrace && q.kind != manyTraces {
		return run, err
	}
	_, where, _ := strings.Cut(run, "\nWHERE ")
	where, _, _ = strings.Cut(where, "\n")
	return strings.Replace(run, "\nWHERE ", fmt.Sprintf("\nWHERE Timestamp >= (SELECT min(Start) FROM %[1]s_trace_id_ts WHERE %[2]s) AND Timestamp <= (SELECT max(End) + 1 FROM %[1]s_trace_id_ts WHERE %[2]s) AND ",
		table, where), 1), nil
}

// byBloom queries the exporter's table without its lookup table.
func byBloom(table string, q question) (string, error) {
	if q.kind == newest { // its newest roots, as Grafana lists them
		return fmt.Sprintf("SELECT TraceId, ServiceName, SpanName, Timestamp, Duration FROM %s\nWHERE Timestamp >= '%s' AND Timestamp < '%s' AND ParentSpanId = ''\nORDER BY Timestamp DESC LIMIT 100",
			table, q.from.UTC().Format(time.DateTime), q.to.UTC().Format(time.DateTime)), nil
	}
	return bySchema(clickhouse.ServiceFirst)(table, withoutBounds(q))
}

// bind puts the values into the text.
func bind(q clickhouse.Query) string {
	run := q.SQL
	for _, p := range q.Params {
		quoted := "'" + p.Value + "'"
		run = strings.NewReplacer("{"+p.Name+":String}", quoted, "{"+p.Name+":Array(String)}", p.Value,
			"{"+p.Name+":DateTime64(9, 'UTC')}", "toDateTime64("+quoted+", 9, 'UTC')").Replace(run)
	}
	return run
}
