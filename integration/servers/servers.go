// Package servers provides tests, examples and benchmarks with a real ClickHouse
// and a real PostgreSQL without an installed server.
//
// Both are child processes on loopback, which `make engines` fetches into .cache at the repository
// root. ClickHouse is the engine of a Python package, and clickhouse.py answers HTTP as
// clickhouse-go and the OpenTelemetry Collector's ClickHouse exporter use it.
//
// With TRACEFLAKETEST_CLICKHOUSE_DSN (http://user:password@host:8123) or
// TRACEFLAKETEST_POSTGRES_DSN (postgres://user:password@host/database) set, the same calls use that
// server. Each [Engine] and each [PostgresServer] is a fresh database, dropped by Close, so that
// tests do not collide.
//
// Limits of this ClickHouse: results are held in memory, there are no sessions, no external tables,
// and a running statement cannot be cancelled (max_execution_time works).
package servers
