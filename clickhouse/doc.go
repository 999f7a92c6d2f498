// Package clickhouse uses the time order of trace IDs in ClickHouse: it has SQL
// functions on trace IDs, a table of spans sorted by them, and queries that read
// little.
//
// A [Schema] is one of three:
//
//   - Layout [Overlay]: the table that the OpenTelemetry Collector's ClickHouse
//     exporter created, unchanged. A window around a trace ID's time replaces
//     the exporter's lookup table.
//   - Layout [Owned], the default: a table with the exporter's columns, so that
//     the exporter can write into it, sorted by trace ID. A trace is one granule.
//     Projections serve searches by service and name and lists of root spans;
//     views have the names of the exporter's lookup table.
//   - [Owned] with a Cluster: that table replicated, and a Distributed table
//     over it, sharded by the low half of the trace ID.
//
// Everything is SQL text: [Schema.Statements] can be run with any client in
// order, and fails on a server that is too old or a table of another shape. [Schema.Create] runs it through database/sql, and package migrate
// turns an existing table into the schema's. A [Query] is text with named
// parameters.
//
// The layout is correct for any IDs. Random IDs are stored and found too, each in
// its own granule; partitions follow the span's date and not the ID's, so that
// their number stays bounded.
package clickhouse
