// Package ddl renders the SQL that creates tables of spans: names, columns,
// tables, views, and the guards that refuse other tables.
package ddl

import "time"

// Table is a table of spans with its views and functions.
type Table struct {
	Database   string // "" is the connection's
	Name       string // "" is otel_traces
	Cluster    string // "" is one server
	TTL        time.Duration
	TraceFirst bool // sorted by trace within the hour; otherwise by service and name
	KeepLookup bool // with the exporter's lookup table; otherwise with views of its names
}
