package clickhouse

import (
	"database/sql"
	"encoding/hex"
	"errors"
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

const instant = "DateTime64(9, 'UTC')"

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
	params, err := listed(s, ids)
	if err != nil {
		return Query{}, err
	}
	return Query{SQL: s.render("traces", "{columns}", columnNames(),
		"{times}", s.timesOf(listedIDs), "{settings}", s.settings()), Params: params}, nil
}

const listedIDs = "{ids:Array(String)}"

// timesOf returns the beginning of a query that defines when some traces began and ended.
func (s Schema) timesOf(ids string) string { return s.render("times", "{ids}", ids) }

// listed checks the schema and returns the parameter for IDs.
func listed[ID ~[16]byte](s Schema, ids []ID) ([]Param, error) {
	switch err := s.validate(); {
	case err != nil:
		return nil, err
	case len(ids) == 0:
		return nil, errors.New("clickhouse: no trace ID: give at least one")
	case len(ids) > maxTraces:
		return nil, fmt.Errorf("clickhouse: %d trace IDs: give at most %d", len(ids), maxTraces)
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = fmt.Sprintf("'%x'", [16]byte(id))
	}
	return []Param{{"ids", "[" + strings.Join(texts, ",") + "]"}}, nil
}

// logColumns are the columns that every version of the exporter's table of logs has.
const logColumns = "`Timestamp`, `TraceId`, `SpanId`, `TraceFlags`, `SeverityText`, " +
	"`SeverityNumber`, `ServiceName`, `Body`, `ResourceSchemaUrl`, `ResourceAttributes`, " +
	"`ScopeSchemaUrl`, `ScopeName`, `ScopeVersion`, `ScopeAttributes`, `LogAttributes`"

// Logs returns the query for all log records of up to 3000 traces in the schema's LogsTable, by
// trace and time.
//
// The query reads little if the table has the index on ranges of trace IDs: see LogsTable.
func Logs[ID ~[16]byte](s Schema, ids []ID) (Query, error) {
	params, err := listed(s, ids)
	if err != nil {
		return Query{}, err
	}
	return Query{
		SQL: fmt.Sprintf("SELECT %s\nFROM %s\nWHERE %s\nORDER BY TraceId, Timestamp%s",
			logColumns, s.quoted(s.named().logs), "TraceId IN "+listedIDs, s.settings()),
		Params: params,
	}, nil
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
	// The times of IDs are whole milliseconds: those in [from, to) are those between both rounded
	// up.
	up := func(t time.Time) string {
		return text(
			t.Add(time.Millisecond - 1).Truncate(time.Millisecond))
	}
	params := []Param{{"from", up(from)}, {"to", up(to)}}
	if limit < 1 || limit > 10_000 {
		return Query{}, fmt.Errorf("clickhouse: limit %d: it is 1 to 10000", limit)
	}
	ids := "TraceId >= traceIDMin({from:" + instant + "}) AND TraceId < traceIDMin({to:" +
		instant + "})"
	if before != ([16]byte{}) {
		params = append(params, Param{"before", hex.EncodeToString(before[:])})
		ids += " AND TraceId < {before:String}"
	}
	return Query{
		SQL: s.render("newest", "{range}", ids, "{limit}", strconv.Itoa(limit),
			"{times}", s.timesOf("ids"), "{settings}", s.settings()),
		Params: params,
	}, nil
}

// Spans returns the query for all spans that began in [from, to), ordered by time, whatever their
// IDs.
func (s Schema) Spans(from, to time.Time) (Query, error) {
	params, err := s.between(from, to)
	if err != nil {
		return Query{}, err
	}
	return Query{
		SQL: fmt.Sprintf("SELECT %s\nFROM %s\nWHERE Timestamp >= {from:%s} AND Timestamp < "+
			"{to:%s}\nORDER BY Timestamp",
			columnNames(), s.quoted(s.named().spans), instant, instant),
		Params: params,
	}, nil
}

// between checks the table and a range of time.
func (s Schema) between(from, to time.Time) ([]Param, error) {
	switch err := s.validate(); {
	case err != nil:
		return nil, err
	case !from.Before(to):
		return nil, fmt.Errorf("clickhouse: from %v to %v: the end must be after the start", from,
			to)
	case from.Year() < 1900 || to.Year() > 2261:
		return nil, fmt.Errorf(
			"clickhouse: from %v to %v: ClickHouse's times range from 1900 to 2261", from, to)
	}
	return []Param{{"from", text(from)}, {"to", text(to)}}, nil
}

func text(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000000") }

// LookupSetting is the ClickHouse setting with which, at 0, a lookup by ID is cheapest. It belongs
// to queries and users, not to tables.
const LookupSetting = "use_skip_indexes_on_data_read"

// LookupAdvice tells operators how to set LookupSetting for tools.
const LookupAdvice = "ALTER USER … SETTINGS " + LookupSetting +
	" = 0 for each tool's user saves a third to two thirds of the bytes"

// settings returns the clause for a query by ID: the range of IDs of a granule then
// excludes it before its bloom filter is read. On a cluster a known ID also selects the shard.
func (s Schema) settings() string {
	switch {
	case s.ReadOnly:
		return ""
	case s.Cluster != "":
		return "\nSETTINGS use_skip_indexes_on_data_read = 0, optimize_skip_unused_shards = 1"
	}
	return "\nSETTINGS use_skip_indexes_on_data_read = 0"
}
