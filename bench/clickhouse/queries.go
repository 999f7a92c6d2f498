package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// kinds of queries, as a trace page asks them.
const (
	oneTrace   = "one trace"
	manyTraces = "100 traces of 5 min"
	allTraces  = "all traces of 5 min"
	allSpans   = "all spans of 5 min"
	searchHour = "search, 1 h"
	searchDay  = "search, 24 h"
)

var kinds = []string{oneTrace, manyTraces, allTraces, allSpans, searchHour, searchDay}

// question is one query with its values.
type question struct {
	kind          string
	ids           [][16]byte
	from, to      time.Time
	service, name string
}

// asker turns a question into the statement to run and, as EXPLAIN does not
// show subqueries that it had to run, those subqueries.
type asker func(table string, q question) (run string, inner []string, err error)

func bySchema(layout clickhouse.Layout) asker {
	return func(table string, q question) (string, []string, error) {
		s := clickhouse.Schema{Table: table, Layout: layout}
		var query clickhouse.Query
		var err error
		switch q.kind {
		case oneTrace, manyTraces:
			query, err = s.Traces(q.ids)
		case allTraces:
			query, err = s.SpansOfTraces(q.from, q.to)
		case allSpans:
			query, err = s.Spans(q.from, q.to)
		default:
			query, err = s.Search(clickhouse.Search{From: q.from, To: q.to, Service: q.service, Name: q.name, Limit: page})
		}
		run := bind(query)
		var inner []string
		if at := strings.Index(run, "(\n    SELECT "); at >= 0 { // within the OR of an overlay
			end := strings.LastIndex(run[:strings.LastIndex(run, "\nORDER BY")], ")")
			end = strings.LastIndex(run[:end], ")")
			inner = append(inner, run[at+1:end])
		}
		return run, inner, err
	}
}

// randomOwned asks an owned table with IDs whose bounds the functions do not know.
func randomOwned(table string, q question) (string, []string, error) {
	if q.kind == allTraces {
		q.kind = allSpans
	}
	return bySchema(clickhouse.Owned)(table, q)
}

// byLookup asks as the exporter's documentation says.
func byLookup(table string, q question) (string, []string, error) {
	if q.kind != oneTrace && q.kind != manyTraces {
		return byTime(table, q)
	}
	query, err := clickhouse.Schema{Table: table}.Traces(q.ids)
	if err != nil {
		return "", nil, err
	}
	run := bind(query)
	_, where, _ := strings.Cut(run, "\nWHERE ")
	where, _, _ = strings.Cut(where, "\n")
	inner := "SELECT min(Start), max(End) + 1 FROM " + table + "_trace_id_ts WHERE " + where
	return strings.Replace(run, "\nWHERE ", fmt.Sprintf("\nWHERE Timestamp >= (SELECT min(Start) FROM %[1]s_trace_id_ts WHERE %[2]s) AND Timestamp <= (SELECT max(End) + 1 FROM %[1]s_trace_id_ts WHERE %[2]s) AND ",
		table, where), 1), []string{inner}, nil
}

// byBloom asks the exporter's table without its lookup table.
func byBloom(table string, q question) (string, []string, error) {
	if q.kind != oneTrace && q.kind != manyTraces {
		return byTime(table, q)
	}
	return bySchema(clickhouse.Owned)(table, q)
}

// byTime: random IDs have no range, so that all traces of a time are at best the spans of that time.
func byTime(table string, q question) (string, []string, error) {
	if q.kind == allTraces {
		q.kind = allSpans
	}
	return bySchema(clickhouse.Overlay)(table, q)
}

// bind puts the values into the text, for EXPLAIN.
func bind(q clickhouse.Query) string {
	run := q.SQL
	for _, p := range q.Params {
		quoted := "'" + p.Value + "'"
		run = strings.NewReplacer("{"+p.Name+":String}", quoted, "{"+p.Name+":Array(String)}", p.Value,
			"{"+p.Name+":DateTime64(9, 'UTC')}", "toDateTime64("+quoted+", 9, 'UTC')").Replace(run)
	}
	return run
}
