package clickhouse

import "fmt"

// MinVersion is the oldest ClickHouse for tables, functions and queries, by its
// changelog: the first with the setting use_skip_indexes_on_data_read. Tests run with 26.7.
const MinVersion = "25.9"

// versionGuard is a statement that fails on a server older than MinVersion.
func versionGuard() string {
	var year, release int
	_, _ = fmt.Sscanf(MinVersion, "%d.%d", &year, &release)
	return fmt.Sprintf("SELECT throwIf(toUInt32(splitByChar('.', version())[1]) * 100 + toUInt32(splitByChar('.', version())[2]) < %d, "+
		"concat('traceflake: the server is ClickHouse ', version(), ', which is too old: upgrade it to %s or newer'))", year*100+release, MinVersion)
}
