// Package collector has configurations of the OpenTelemetry Collector to copy: owned.yaml writes
// into the table of traceflake's clickhouse.Schema, overlay.yaml into the table that the Collector
// creates. Its tests parse both with the Collector's own code, send spans of the SDK through its
// ClickHouse exporter, and find them again with every query.
package collector
