// Package clickhouse provides SQL functions, tables and queries that use the time order of trace
// IDs to read little.
//
// A [Schema] has one of three layouts:
//
//   - [ServiceFirst], the default: a table with the exporter's columns, so that the
//     exporter can write into it, sorted by four hours, service, span name, trace
//     and time.
//   - [TraceFirst]: the same sorted by hour, trace and time.
//   - [Overlay]: the table that the OpenTelemetry Collector's ClickHouse exporter
//     created, with an index on ranges of trace IDs.
//
// With a Cluster the table is replicated, with a Distributed table over it, sharded
// by the low half of the trace ID. The exporter's lookup table, which has the times of
// each trace, is replaced by a view of its name, unless KeepLookup is set.
//
// Everything is SQL text: [Schema.Statements] can be run with any client, in order.
// [Schema.Create] runs it through database/sql, unless the server is too old or has a table
// of another shape. A [Query] is text with named parameters.
//
// All layouts return the right spans for any IDs. Random IDs are stored among those
// of their time, since time comes first in the sort key; partitions follow the
// span's date and not the ID's, so that their number stays bounded.
package clickhouse
