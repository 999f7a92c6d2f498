// Package clickhouse provides SQL functions, tables and queries that read less because trace IDs
// are ordered by time.
//
// A [Schema] is a table with the columns of the OpenTelemetry Collector's ClickHouse exporter, so
// that the exporter can write into it, sorted by four hours, service, span name, trace and time. In
// each four hours the outliers are stored apart, in the order of time: spans that start more than
// an hour from the time in their trace ID, such as those with random IDs. The exporter's lookup
// table has the times of each trace, so that a lookup by ID is one complete query, and costs the
// same at any age.
//
// With Overlay the table is the exporter's, with an index on ranges of trace IDs. With a Cluster
// the tables are replicated, behind Distributed tables that are sharded by the low half of the
// trace ID.
//
// Everything is SQL text: [Schema.Statements] can be run with any client, in order. [Schema.Create]
// runs it through database/sql, unless the server is too old or has a table with another schema. A
// [Query] is text with named parameters.
//
// Both kinds of table return the right spans for any IDs. Partitions follow the span's date and not
// the ID's, so that their number stays bounded.
package clickhouse
