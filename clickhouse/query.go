package clickhouse

import (
	"database/sql"
	"fmt"
	"strings"
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
// The query asks the table alone: the lookup table may lack traces, for example those of a
// restored partition.
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
	v := s.values()
	if s.Cluster != "" { // a known ID selects the shard
		v.Settings = "optimize_skip_unused_shards = 1"
	}
	return Query{SQL: s.render("traces", v),
		Params: []Param{{"ids", "[" + strings.Join(texts, ",") + "]"}}}, nil
}
