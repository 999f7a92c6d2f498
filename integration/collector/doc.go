// Package collector tests the configurations in examples/collector: it parses both with the
// Collector's own code, and sends spans of the SDK through its ClickHouse exporter into the tables.
package collector
