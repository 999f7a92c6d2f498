package clickhouse

import "github.com/traceflake/traceflake/clickhouse/internal/ddl"

// MinVersion is the oldest ClickHouse for tables, functions and queries, by its
// changelog: the first with the setting use_skip_indexes_on_data_read. Tests run
// with 26.7.
const MinVersion = "25.9"

// CheckVersion returns an error if a server, which gave version as SELECT
// version() does, is too old.
func CheckVersion(version string) error { return ddl.CheckVersion(version, MinVersion) }
