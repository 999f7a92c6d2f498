package clickhouse

import "github.com/traceflake/traceflake/clickhouse/internal/ddl"

// Functions returns the statements that create the functions traceIDTime,
// traceIDSeq, traceIDLow, traceIDMin, traceIDMax, traceIDIsOurs and traceIDAt,
// each followed by a semicolon, for clickhouse-client. They can be run again.
// Functions belong to the server, not to a database.
func Functions() string { return ddl.Functions() }
