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
func Traces[ID ~[16]byte](s Schema, ids []ID) (Query, error) {
	return byID(s, ids, "traces", "{times}", s.render("times", "{ids}", "{ids:Array(String)}"),
		"{within}", template("within"))
}

// Logs returns the query for all log records of up to 3000 traces in the schema's LogsTable, by
// trace and time.
func Logs[ID ~[16]byte](s Schema, ids []ID) (Query, error) { return byID(s, ids, "logs") }

// byID returns a query for traces, whose text is a template.
func byID[ID ~[16]byte](s Schema, ids []ID, name string, places ...string) (q Query, err error) {
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
	return Query{SQL: s.render(name, append(places, "{settings}", s.lookupSettings())...),
		Params: []Param{{"ids", "[" + strings.Join(texts, ",") + "]"}}}, nil
}

// Newest returns the query that lists traces whose ID's time lies in [from, to), newest first, in
// the order of their IDs: TraceId, Start, End, Spans, Errors, Service and Name, the last two of the
// root or otherwise of the first span. The result has at most limit traces. For the next page pass
// the last TraceId as before; the zero ID starts, and an empty page ends.
//
// The query reads little more than these traces, whatever the range. Traces with foreign IDs have
// no place in this order and are left out; [Schema.Spans] and [Schema.Search] find them.
func (s Schema) Newest(from, to time.Time, before [16]byte, limit int) (Query, error) {
	if _, err := s.between(from, to); err != nil {
		return Query{}, err
	}
	if limit < 1 || limit > maxLimit {
		return Query{}, errorf("limit %d: it is 1 to %d", limit, maxLimit)
	}
	// The times of IDs are whole milliseconds: those in [from, to) are those between both rounded
	// up.
	up := func(t time.Time) string {
		return text(t.Add(time.Millisecond - 1).Truncate(time.Millisecond))
	}
	params := []Param{{"from", up(from)}, {"to", up(to)}}
	page := ""
	if before != ([16]byte{}) {
		params = append(params, Param{"before", hex.EncodeToString(before[:])})
		page = " AND TraceId < {before:String}"
	}
	return Query{
		SQL: s.render("newest", "{page}", page, "{limit}", strconv.Itoa(limit),
			"{times}", s.render("times", "{ids}", "ids"), "{within}", template("within"),
			"{settings}", s.lookupSettings()),
		Params: params,
	}, nil
}

// maxLimit is the most that a page of traces or spans may have.
const maxLimit = 10_000

// Spans returns the query for all spans that began in [from, to), ordered by time, whatever their
// IDs.
func (s Schema) Spans(from, to time.Time) (Query, error) {
	params, err := s.between(from, to)
	return Query{SQL: s.render("between"), Params: params}, err
}

// between checks the schema and a range of time, and returns the range's parameters.
func (s Schema) between(from, to time.Time) ([]Param, error) {
	switch err := s.validate(); {
	case err != nil:
		return nil, err
	case !from.Before(to):
		return nil, errorf("from %v to %v: the end must be after the start", from, to)
	case from.Year() < 1900 || to.Year() > 2261:
		return nil, errorf("from %v to %v: ClickHouse's times range from 1900 to 2261", from, to)
	}
	return []Param{{"from", text(from)}, {"to", text(to)}}, nil
}

func text(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000000") }

// lookupSettings returns the clause for a query by ID: on a cluster a known ID selects the shard.
func (s Schema) lookupSettings() string {
	if s.Cluster == "" {
		return ""
	}
	return "\nSETTINGS optimize_skip_unused_shards = 1"
}
