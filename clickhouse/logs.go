package clickhouse

import "fmt"

// logColumns are those that every version of the exporter's table of logs has.
const logColumns = "`Timestamp`, `TraceId`, `SpanId`, `TraceFlags`, `SeverityText`, `SeverityNumber`, `ServiceName`, `Body`, " +
	"`ResourceSchemaUrl`, `ResourceAttributes`, `ScopeSchemaUrl`, `ScopeName`, `ScopeVersion`, `ScopeAttributes`, `LogAttributes`"

// Logs finds the log records of up to 3000 traces in the schema's LogsTable, by
// trace and time. Records from more than the schema's Slack before the earliest of
// the IDs' times are not found, unless that time is in the future.
//
// It reads little if the table has the index on ranges of trace IDs: see LogsTable.
func Logs[ID ~[16]byte](s Schema, ids []ID) (Query, error) {
	if err := s.validate(); err != nil {
		return Query{}, err
	}
	l, err := listed(ids)
	if err != nil {
		return Query{}, err
	}
	return Query{
		SQL: fmt.Sprintf("SELECT %s\nFROM %s\nWHERE %s AND Timestamp >= traceIDNotBefore(%s, %s)\nORDER BY %sTimestamp%s",
			logColumns, s.logs().quoted(""), l.where, l.first, s.slack(), l.order, s.settings()),
		Params: l.params,
	}, nil
}
