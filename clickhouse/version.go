package clickhouse

import "github.com/traceflake/traceflake/clickhouse/internal/ddl"

// MinVersion is the oldest ClickHouse for tables, functions and queries. Tests run
// with 26.7.
const MinVersion = ddl.MinVersion
