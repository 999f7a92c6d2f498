// Package clickhouse provides SQL functions, tables and queries that read less because trace IDs
// are ordered by time.
//
// A [Schema] is a table with the columns of the OpenTelemetry Collector's ClickHouse exporter, so
// that the exporter can write into it, in the order of traces: sorted by five minutes and trace ID.
// The spans of a trace lie together and traces lie in the order of their time. A projection has
// narrow columns by service, for charts. A trace is found by its ID alone. The exporter's lookup
// table, with the times of each trace, is kept for tools.
//
// With a Cluster the tables are replicated, behind Distributed tables that are sharded by the low
// half of the trace ID.
//
// Everything is SQL text: [Schema.Statements] can be run with any client, in order. [Schema.Create]
// runs it through database/sql, unless the server is too old or has a table with another schema. A
// [Query] is text with named parameters.
//
// The table returns the right spans for any IDs. Partitions follow the span's date and not
// the ID's, so that their number stays bounded.
package clickhouse
