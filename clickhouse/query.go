package clickhouse

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
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

	// A query on an Overlay ends so long after the newest ID's time. The other
	// layouts need no end: their sort key excludes the granules after it.
	windowEnd = time.Hour
	windowTo  = " + INTERVAL 1 HOUR"
	until     = " AND Timestamp < {to:" + instant + "}" + windowTo
)

// Trace finds the spans of a trace, ordered by time: see [Traces].
func (s Schema) Trace(id [16]byte) (Query, error) { return Traces(s, [][16]byte{id}) }

// maxTraces keeps the list below 128 KiB, the server's limit for a parameter over
// HTTP (http_max_field_value_size).
const maxTraces = 3000

// Traces finds the spans of up to 3000 traces, by trace and time, with the columns
// of the exporter's table. IDs are [16]byte or a type of it, such as trace.TraceID.
//
// Spans that begin more than the schema's Slack before the earliest of the IDs'
// times are not found, unless that time is in the future, as of most foreign IDs.
// On an Overlay neither are spans that begin over an hour after the latest, so
// request IDs of about the same time. With KeepLookup the times are those of the lookup
// table, and no span is missing. Pass the result to [Incomplete], and query
// the traces that it returns with [TracesEverywhere].
func Traces[ID ~[16]byte](s Schema, ids []ID) (Query, error) { return traces(s, ids, true) }

// TracesEverywhere is Traces without bounds on time.
func TracesEverywhere[ID ~[16]byte](s Schema, ids []ID) (Query, error) { return traces(s, ids, false) }

func traces[ID ~[16]byte](s Schema, ids []ID, bounded bool) (Query, error) {
	if err := s.validate(); err != nil {
		return Query{}, err
	}
	l, err := listed(ids)
	if err != nil {
		return Query{}, err
	}
	where := l.where
	switch {
	case bounded && s.KeepLookup:
		lookup := s.ddl().Quoted(ddl.Lookup)
		where += fmt.Sprintf(" AND Timestamp >= (SELECT min(Start) FROM %[1]s WHERE %[2]s) AND Timestamp <= (SELECT max(End) + 1 FROM %[1]s WHERE %[2]s)", lookup, l.where)
	case bounded:
		where += fmt.Sprintf(" AND Timestamp >= traceIDNotBefore(%s, %s)", l.first, s.slack())
		if s.Layout == Overlay {
			where += " AND Timestamp < traceIDTime(" + l.last + ")" + windowTo
		}
	}
	return Query{
		SQL:    fmt.Sprintf("SELECT %s\nFROM %s\nWHERE %s\nORDER BY %sTimestamp, SpanId%s", ddl.ColumnNames(), s.name(), where, l.order, s.settings()),
		Params: l.params,
	}, nil
}

// list is a list of IDs in a query.
type list struct {
	where       string // the condition on TraceId
	first, last string // the lowest and the highest ID
	order       string // what distinguishes the traces in an ORDER BY
	params      []Param
}

func listed[ID ~[16]byte](ids []ID) (list, error) {
	switch {
	case len(ids) == 0:
		return list{}, errors.New("clickhouse: no trace ID: give at least one")
	case len(ids) > maxTraces:
		return list{}, fmt.Errorf("clickhouse: %d trace IDs: give at most %d", len(ids), maxTraces)
	case len(ids) == 1:
		return list{"TraceId = {id:String}", "{id:String}", "{id:String}", "", []Param{{"id", hexadecimal(ids[0])}}}, nil
	}
	return list{
		"TraceId IN {ids:Array(String)}", "arrayMin({ids:Array(String)})", "arrayMax({ids:Array(String)})", "TraceId, ",
		[]Param{{"ids", "[" + quotedIDs(ids) + "]"}},
	}, nil
}

func quotedIDs[ID ~[16]byte](ids []ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = ddl.QuoteText(hexadecimal(id))
	}
	return strings.Join(texts, ",")
}

func hexadecimal[ID ~[16]byte](id ID) string {
	bytes := [16]byte(id)
	return hex.EncodeToString(bytes[:])
}

// Newest lists traces whose ID's time lies in [from, to), newest first, in the
// order of their IDs: TraceId, Start, End, Spans, Errors, Service and Name, the
// last two of the root or otherwise of the first span. There are at most limit
// traces. The last TraceId is the cursor: pass it as before for the next page; the
// zero ID starts, an empty page ends.
//
// It reads all of the range. [Widening] returns short ranges to try first.
//
// Traces with foreign IDs have no place in this order and are left out;
// [Schema.Spans] and [Schema.Search] find them. Spans that begin more than Slack
// before from do not count, nor on an Overlay those over an hour after to; a trace
// all of whose spans begin there is not listed.
func (s Schema) Newest(from, to time.Time, before [16]byte, limit int) (Query, error) {
	params, err := s.betweenIDs(from, to)
	if err != nil {
		return Query{}, err
	}
	if limit < 1 || limit > 10_000 {
		return Query{}, fmt.Errorf("clickhouse: limit %d: it is 1 to 10000", limit)
	}
	ids, window := s.idsBetween()
	listed := window // a trace is found by any span, so by an early one
	if s.Layout != Overlay {
		listed += until
	}
	if before != ([16]byte{}) {
		params = append(params, Param{"before", hexadecimal(before)})
		ids += " AND TraceId < {before:String}"
	}
	return Query{
		SQL: fmt.Sprintf(`SELECT TraceId, min(Timestamp) AS Start, max(Timestamp + toIntervalNanosecond(Duration)) AS End,
    count() AS Spans, countIf(StatusCode IN ('STATUS_CODE_ERROR', 'Error')) AS Errors,
    argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS Service, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS Name
FROM %[1]s
WHERE TraceId IN (SELECT DISTINCT TraceId FROM %[1]s WHERE %[2]s%[3]s ORDER BY TraceId DESC LIMIT %[4]d)%[5]s
GROUP BY TraceId
ORDER BY TraceId DESC%[6]s`, s.name(), ids, listed, limit, window, s.settings("distributed_product_mode = 'local'")),
		Params: params,
	}, nil
}

// Widening returns the starts of ranges that end at to: a minute before it, four
// minutes, sixteen, and so on, the last one being from. Query [Schema.Newest] from
// each of them until a page is full: a page of a busy hour then reads minutes and
// not the hour.
func Widening(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for length := time.Minute; length > 0 && length < to.Sub(from); length *= 4 {
			if !yield(to.Add(-length)) {
				return
			}
		}
		if from.Before(to) {
			yield(from)
		}
	}
}

// SpansOfTraces finds all spans of the traces whose ID's time lies in [from, to),
// by trace and time, late spans too. Foreign IDs have no time: see [Schema.Spans].
// Spans that begin more than Slack before from are missing, and on an Overlay
// those over an hour after to.
func (s Schema) SpansOfTraces(from, to time.Time) (Query, error) {
	params, err := s.betweenIDs(from, to)
	if err != nil {
		return Query{}, err
	}
	ids, window := s.idsBetween()
	return Query{
		SQL:    fmt.Sprintf("SELECT %s\nFROM %s\nWHERE %s%s\nORDER BY TraceId, Timestamp, SpanId", ddl.ColumnNames(), s.name(), ids, window),
		Params: params,
	}, nil
}

// idsBetween are the conditions for the traces whose ID's time lies in [from, to):
// that on the ID, and that on the times of their spans.
func (s Schema) idsBetween() (ids, window string) {
	ids = "TraceId >= traceIDMin({from:" + instant + "}) AND TraceId < traceIDMin({to:" + instant + "})"
	window = " AND Timestamp >= {from:" + instant + "} - " + s.slack()
	if s.Layout == Overlay {
		window += until
	}
	return ids, window
}

// Spans finds all spans that began in [from, to), ordered by time, whatever
// their IDs.
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

// settings returns the clause for a query by ID: the range of IDs of a granule then
// excludes it before its bloom filter is read. onCluster, if given, is for a Distributed
// table: each shard queries itself, since a trace is on one shard.
func (s Schema) settings(onCluster ...string) string {
	var all []string
	if !s.ReadOnly {
		all = append(all, "use_skip_indexes_on_data_read = 0")
	}
	if s.Cluster != "" {
		all = append(all, onCluster...)
	}
	if len(all) == 0 {
		return ""
	}
	return "\nSETTINGS " + strings.Join(all, ", ")
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

// slack is the schema's Slack as an interval.
func (s Schema) slack() string {
	slack := s.Slack
	if slack == 0 {
		slack = time.Hour
	}
	return fmt.Sprintf("INTERVAL %d SECOND", int64((slack+time.Second-1)/time.Second))
}
