package clickhouse

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Query is a SELECT with ClickHouse's query parameters, {name:Type}. The server
// substitutes the values, over its native and its HTTP interface.
type Query struct {
	SQL    string
	Params []Param
}

// Param is the value of {name:Type}, as a string.
type Param struct{ Name, Value string }

// Args are the parameters for database/sql. For clickhouse-go's own interface
// make a clickhouse.Named(p.Name, p.Value) of each parameter.
func (q Query) Args() []any {
	args := make([]any, len(q.Params))
	for i, p := range q.Params {
		args[i] = sql.Named(p.Name, p.Value)
	}
	return args
}

var escapeParam = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)

// Values are the parameters for the URL of the HTTP interface.
func (q Query) Values() url.Values {
	values := url.Values{}
	for _, p := range q.Params {
		values.Set("param_"+p.Name, escapeParam.Replace(p.Value))
	}
	return values
}

const (
	instant = "DateTime64(9, 'UTC')"

	// An overlay looks from one minute before the ID's time to one hour after.
	windowFrom = " - INTERVAL 1 MINUTE"
	windowTo   = " + INTERVAL 1 HOUR"
	windowEnd  = time.Hour
)

// Trace finds the spans of a trace, ordered by time. The columns are those of
// the exporter's table.
//
// Owned: it reads one granule by the sort key. It also finds late and very long
// spans, and foreign IDs.
//
// Overlay: it uses the exporter's bloom filter in a window from one minute before
// the ID's time to one hour after it. Pass the result to [Schema.Incomplete], and
// query the traces that it returns with [Schema.TracesEverywhere].
func (s Schema) Trace(id [16]byte) (Query, error) { return s.Traces([][16]byte{id}) }

// maxTraces keeps the list below 128 KiB, the server's limit for a parameter over
// HTTP (http_max_field_value_size).
const maxTraces = 3000

// Traces finds the spans of up to 3000 traces, by trace and time, as Trace does.
// On an Overlay the window covers all the IDs together, so request IDs of about
// the same time.
func (s Schema) Traces(ids [][16]byte) (Query, error) {
	return s.traces(ids, s.Layout == Overlay)
}

// TracesEverywhere is Traces without a window.
func (s Schema) TracesEverywhere(ids [][16]byte) (Query, error) {
	return s.traces(ids, false)
}

func (s Schema) traces(ids [][16]byte, window bool) (Query, error) {
	if err := s.validate(); err != nil {
		return Query{}, err
	}
	switch {
	case len(ids) == 0:
		return Query{}, errors.New("clickhouse: no trace ID: give at least one")
	case len(ids) > maxTraces:
		return Query{}, fmt.Errorf("clickhouse: %d trace IDs: give at most %d", len(ids), maxTraces)
	}
	where, first, last, order := "TraceId = {id:String}", "{id:String}", "{id:String}", "Timestamp, SpanId"
	param := Param{"id", hex.EncodeToString(ids[0][:])}
	if len(ids) > 1 {
		where, first, last = "TraceId IN {ids:Array(String)}", "arrayMin({ids:Array(String)})", "arrayMax({ids:Array(String)})"
		order = "TraceId, " + order
		var list strings.Builder
		for i, id := range ids {
			list.WriteString([]string{"['", "','"}[min(i, 1)] + hex.EncodeToString(id[:]))
		}
		param = Param{"ids", list.String() + "']"}
	}
	if window {
		where += " AND Timestamp >= traceIDTime(" + first + ")" + windowFrom + " AND Timestamp < traceIDTime(" + last + ")" + windowTo
	}
	return Query{
		SQL:    fmt.Sprintf("SELECT %s\nFROM %s\nWHERE %s\nORDER BY %s", ddl.ColumnNames(), s.name(), where, order),
		Params: []Param{param},
	}, nil
}

// Newest lists traces whose ID's time lies in [from, to), newest first, in the
// order of their IDs: TraceId, Start, End, Spans, Errors, Service and Name, the
// last two of the root or otherwise of the first span. There are at most limit
// traces, fewer if they have very many spans. The last TraceId is the cursor: pass it as before for
// the next page; the zero ID starts, an empty page ends.
//
// Traces with foreign IDs have no place in this order and are left out;
// [Schema.Spans] and [Schema.Search] find them. On an Overlay, spans that begin
// over an hour after the ID's time do not count.
func (s Schema) Newest(from, to time.Time, before [16]byte, limit int) (Query, error) {
	params, err := s.betweenIDs(from, to)
	if err != nil {
		return Query{}, err
	}
	if limit < 1 || limit > 10_000 {
		return Query{}, fmt.Errorf("clickhouse: limit %d: it is 1 to 10000", limit)
	}
	in := "TraceId >= traceIDMin({from:" + instant + "}) AND TraceId < traceIDMin({to:" + instant + "})"
	end := "{to:" + instant + "}"
	if before != ([16]byte{}) {
		params = append(params, Param{"before", hex.EncodeToString(before[:])})
		in += " AND TraceId < {before:String}"
		end = "least({to:" + instant + "}, traceIDTime({before:String}) + INTERVAL 1 MILLISECOND)"
	}
	var window string
	if s.Layout == Overlay {
		window = " AND Timestamp >= {from:" + instant + "}" + windowFrom + " AND Timestamp < " + end + windowTo
	}
	// The inner LIMIT lets the sort key stop after a granule or two.
	return Query{
		SQL: fmt.Sprintf(`SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM %[1]s
WHERE TraceId IN (
    SELECT DISTINCT TraceId
    FROM (SELECT TraceId FROM %[1]s WHERE %[2]s%[3]s ORDER BY TraceId DESC LIMIT %[4]d)
    ORDER BY TraceId DESC LIMIT %[5]d)%[3]s
GROUP BY TraceId
ORDER BY TraceId DESC
LIMIT %[5]d%[6]s`, s.name(), in, window, 64*limit, limit, s.newestSettings()),
		Params: params,
	}, nil
}

// SpansOfTraces finds all spans of the traces whose ID's time lies in [from, to),
// by trace and time. On an Owned table it includes late spans, and reads only
// these traces. Foreign IDs have no time: see [Schema.Spans].
// On an Overlay, spans that begin over an hour after to are missing.
func (s Schema) SpansOfTraces(from, to time.Time) (Query, error) {
	params, err := s.betweenIDs(from, to)
	if err != nil {
		return Query{}, err
	}
	var window string
	if s.Layout == Overlay {
		window = " AND Timestamp >= {from:" + instant + "}" + windowFrom + " AND Timestamp < {to:" + instant + "}" + windowTo
	}
	return Query{
		SQL: fmt.Sprintf("SELECT %s\nFROM %s\nWHERE TraceId >= traceIDMin({from:%[3]s}) AND TraceId < traceIDMin({to:%[3]s})%[4]s\nORDER BY TraceId, Timestamp, SpanId",
			ddl.ColumnNames(), s.name(), instant, window),
		Params: params,
	}, nil
}

// Spans finds all spans that began in [from, to), ordered by time, whatever
// their IDs. On an Owned table, it also reads the granules of traces with spans
// that begin long after the trace.
func (s Schema) Spans(from, to time.Time) (Query, error) {
	params, err := s.between(from, to)
	if err != nil {
		return Query{}, err
	}
	return Query{
		SQL: fmt.Sprintf("SELECT %s\nFROM %s\nWHERE Timestamp >= {from:%s} AND Timestamp < {to:%s}\nORDER BY Timestamp",
			ddl.ColumnNames(), s.name(), instant, instant),
		Params: params,
	}, nil
}

// between checks the table and a range of time.
func (s Schema) between(from, to time.Time) ([]Param, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if !from.Before(to) {
		return nil, fmt.Errorf("clickhouse: from %v to %v: the end must be after the start", from, to)
	}
	if from.Year() < 1900 || to.Year() > 2261 {
		return nil, fmt.Errorf("clickhouse: from %v to %v: ClickHouse's times range from 1900 to 2261", from, to)
	}
	return []Param{{"from", text(from)}, {"to", text(to)}}, nil
}

// betweenIDs is between for the times of IDs, which are whole milliseconds: those
// in [from, to) are those between both rounded up.
func (s Schema) betweenIDs(from, to time.Time) ([]Param, error) {
	if _, err := s.between(from, to); err != nil {
		return nil, err
	}
	up := func(t time.Time) string { return text(t.Add(time.Millisecond - 1).Truncate(time.Millisecond)) }
	return []Param{{"from", up(from)}, {"to", up(to)}}, nil
}

func text(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000000") }

// newestSettings are those of Newest. No projection serves it, but ClickHouse may
// choose one for the subquery and read all of it. Over a Distributed table each
// shard queries itself, since a trace is on one shard.
func (s Schema) newestSettings() string {
	settings := "\nSETTINGS optimize_use_projections = 0"
	if s.Cluster != "" {
		settings += ", distributed_product_mode = 'local'"
	}
	return settings
}

// SampleCondition returns a condition that holds for exactly the traces that
// OpenTelemetry's TraceIDRatioBased sampler keeps at that ratio, 0 to 1.
func SampleCondition(ratio float64) string {
	switch {
	case ratio <= 0 || math.IsNaN(ratio):
		return "0"
	case ratio >= 1:
		return "1"
	}
	return fmt.Sprintf("bitShiftRight(traceIDLow(TraceId), 1) < %d", uint64(ratio*(1<<63)))
}

// name is the quoted name of the table.
func (s Schema) name() string { return s.ddl().Quoted("") }
