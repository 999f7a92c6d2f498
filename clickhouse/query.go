package clickhouse

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Query is a SELECT with ClickHouse's query parameters, {name:Type}. The server
// substitutes the values, over its native and its HTTP interface.
type Query struct {
	SQL    string
	Params []Param
}

// Param is the value of {name:Type}, as a string. In a URL of the HTTP interface it is
// param_name, with tabs, newlines and backslashes escaped by a backslash.
type Param struct{ Name, Value string }

// Args returns the parameters for database/sql. For clickhouse-go's own interface pass
// clickhouse.Named(p.Name, p.Value) for each parameter.
func (q Query) Args() []any {
	args := make([]any, len(q.Params))
	for i, p := range q.Params {
		args[i] = sql.Named(p.Name, p.Value)
	}
	return args
}

// Trace returns the query for the spans of a trace, ordered by time: see [Traces].
func (s Schema) Trace(id [16]byte) (Query, error) { return Traces(s, [][16]byte{id}) }

// maxTraces keeps the list below 128 KiB, the server's limit for a parameter over
// HTTP (http_max_field_value_size).
const maxTraces = 3000

// Traces returns the query for all spans of up to 3000 traces, by trace and time, with the columns
// of the exporter's table. IDs are [16]byte or a type of it, such as trace.TraceID.
//
// The query takes the times of the traces from the lookup table, and reads only the spans of these
// times.
func Traces[ID ~[16]byte](s Schema, ids []ID) (q Query, err error) {
	switch err := s.validate(); {
	case err != nil:
		return q, err
	case len(ids) == 0:
		return q, errorf("no trace ID: give at least one")
	case len(ids) > maxTraces:
		return q, errorf("%d trace IDs: give at most %d", len(ids), maxTraces)
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = fmt.Sprintf("'%x'", [16]byte(id))
	}
	return Query{SQL: s.render("traces", "{times}",
		s.render("times", "{ids}", "{ids:Array(String)}"),
		"{settings}", s.lookupSettings()),
		Params: []Param{{"ids", "[" + strings.Join(texts, ",") + "]"}}}, nil
}

// Place is the Start and TraceId of the last trace on a page of [Schema.Newest].
type Place struct {
	Start   time.Time
	TraceID [16]byte
}

// Newest returns the query that lists the traces whose first span began in [from, to), each once,
// newest first: TraceId, Start, End, Spans, Errors, Service and Name, the last two of the root or
// otherwise of the first span. The result has at most limit traces, with any IDs. For the next page
// pass the last one's place as before; the zero Place starts, and an empty page ends.
//
// The query reads the newest five minutes. If they have fewer traces than limit, it reads an hour,
// then a day, then the whole period.
func (s Schema) Newest(from, to time.Time, before Place, limit int) (Query, error) {
	switch err := s.validate(); {
	case err != nil:
		return Query{}, err
	case !from.Before(to):
		return Query{}, errorf("from %v to %v: the end must be after the start", from, to)
	case from.Year() < 1900 || to.Year() > 2261:
		return Query{}, errorf("from %v to %v: ClickHouse's times range from 1900 to 2261", from,
			to)
	case limit < 1 || limit > maxLimit:
		return Query{}, errorf("limit %d: it is 1 to %d", limit, maxLimit)
	}
	rest := ""
	params := []Param{{"from", text(from)}}
	if before != (Place{}) {
		rest = " AND (Start, TraceId) < ({start:DateTime64(9, 'UTC')}, {before:String})"
		params = append(params, Param{"start", text(before.Start)},
			Param{"before", hex.EncodeToString(before.TraceID[:])})
		to = before.Start.Add(1)
	}
	last, steps := "", ""
	for k, since := range sinces(from, to) {
		// Most traces on a page have just begun.
		more, either, most := "1", fmt.Sprint("seen", k), fmt.Sprint(" LIMIT ", 10*limit)
		if last != "" {
			more = fmt.Sprintf("length(%s) < %d", last, limit)
			either = fmt.Sprintf("if(%s, %s, %s)", more, either, last)
		}
		if k > 0 && since.Equal(begin(from)) {
			most = ""
		}
		last = fmt.Sprint("page", k)
		steps += s.render("newest_step", "{more}", more, "{since}",
			"toDateTime64('"+text(since)+"', 9, 'UTC')", "{before}", rest, "{most}", most,
			"{either}", either, "{limit}", strconv.Itoa(limit), "{k}", strconv.Itoa(k)) + "\n    "
	}
	return Query{
		SQL: s.render("newest", "{steps}\n    ", steps,
			"{times}", s.render("times", "{ids}", "(SELECT arrayJoin("+last+"))"),
			"{page}", last, "{settings}", s.lookupSettings()),
		Params: append(params, Param{"to", text(to)}),
	}, nil
}

// bucketed is the length of the buckets of the sorting key.
const bucketed = 5 * time.Minute

// begin returns the beginning of the bucket of a time, a whole second like the times of the lookup
// table.
func begin(t time.Time) time.Time { return t.Truncate(bucketed) }

// sinces returns the beginnings of the periods, each ending at to, in which a page is looked for.
// The last one, which has all traces, comes at least second.
func sinces(from, to time.Time) (all []time.Time) {
	for _, back := range []time.Duration{bucketed, time.Hour, 24 * time.Hour} {
		if since := begin(to.Add(-back)); since.After(begin(from)) {
			all = append(all, since)
		}
	}
	if len(all) == 0 {
		all = append(all, begin(from))
	}
	return append(all, begin(from))
}

// maxLimit is the most that a page of traces may have.
const maxLimit = 10_000

func text(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000000") }

// lookupSettings returns the clause for a query by ID: on a cluster a known ID selects the shard.
func (s Schema) lookupSettings() string {
	if s.Cluster == "" {
		return ""
	}
	return "\nSETTINGS optimize_skip_unused_shards = 1"
}
