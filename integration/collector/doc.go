// Package collector tests the configurations in examples/collector: it parses both with the
// Collector's own code, sends spans of the SDK through its ClickHouse exporter, and finds them
// again with every query.
package collector
