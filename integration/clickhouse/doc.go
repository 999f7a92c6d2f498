// Package clickhouse tests the SQL of traceflake's package clickhouse on a real
// ClickHouse: functions, schemas, queries and migrations.
package clickhouse
