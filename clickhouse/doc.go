// Package clickhouse provides SQL functions, tables and queries that use the time order of trace
// IDs to read little.
//
// A [Schema] is a table with the columns of the OpenTelemetry Collector's ClickHouse exporter, so
// that the exporter can write into it, sorted by four hours, service, span name, trace and time.
// In each four hours the outliers stand apart: spans whose trace ID's time is not within an hour of
// their own, such as those of random IDs. The exporter's lookup table has the times of each trace,
// so that a lookup by ID is one query, complete, and costs the same at any age.
//
// With Overlay the table is the one that the exporter created, with an index on ranges of trace
// IDs. With a Cluster the tables are replicated, with Distributed tables over them, sharded by the
// low half of the trace ID.
//
// Everything is SQL text: [Schema.Statements] can be run with any client, in order.
// [Schema.Create] runs it through database/sql, unless the server is too old or has a table
// of another shape. A [Query] is text with named parameters.
//
// Both return the right spans for any IDs. Random IDs are stored among those of their time, since
// time comes first in the sort key; partitions follow the span's date and not the ID's, so that
// their number stays bounded.
package clickhouse
