package clickhouse

import (
	"context"
	"time"
)

// Schema is a table of spans. It is a value; all methods are pure except those that take a
// *sql.DB.
type Schema struct {
	Database string        // "" is the connection's; it must exist
	Table    string        // "" is otel_traces, as for the exporter
	Cluster  string        // "" is one server; a macro as in {cluster} is allowed
	Overlay  bool          // the table is the one that the Collector's exporter created
	TTL      time.Duration // whole seconds after a span's start; 0 keeps spans forever

	// LogsTable is the exporter's table of logs, for [Logs]; "" is otel_logs. If it is
	// set, Create adds the index on ranges of trace IDs to it, too.
	LogsTable string

	// Materialize lets Create also build the index on ranges of trace IDs for the spans of an
	// Overlay, and for the logs if LogsTable is set, that were stored before Create added it.
	// Create then blocks until all servers have built it; if it is interrupted, the servers
	// continue. It costs about a second of CPU for six million rows, and 0.01 bytes a row.
	Materialize bool

	// ReadOnly is for users of ClickHouse who may not change settings (readonly = 1): queries by ID
	// then send no settings, and read up to three times the bytes from disk.
	ReadOnly bool
}

func (s Schema) validate() error {
	for _, part := range []struct{ what, name string }{
		{"database", s.Database}, {"table", s.Table}, {"table of logs", s.LogsTable},
	} {
		if part.name != "" && !plainName.MatchString(part.name) {
			return errorf("%s %q: a name has 1 to 128 letters, digits, _ or -, "+
				"and no database in front of it", part.what, part.name)
		}
	}
	switch {
	case s.Cluster != "" && !clusterName.MatchString(s.Cluster):
		return errorf("cluster %q: a name has 1 to 128 letters, digits, _ or -, "+
			"or is a macro as in {cluster}", s.Cluster)
	case s.TTL < 0 || s.TTL%time.Second != 0:
		return errorf(
			"TTL %v: it is a whole number of seconds, or 0 to keep spans forever",
			s.TTL)
	case s.TTL > maxTTL:
		return errorf("TTL %v: ClickHouse would count past the year 2106 and "+
			"drop spans at once; 50 years is the most", s.TTL)
	}
	return nil
}

// maxTTL keeps a span's time plus TTL within a DateTime, which wraps around.
const maxTTL = 50 * 365 * 24 * time.Hour

// Statements returns the statements that create the functions, the table of spans, and the
// exporter's lookup table with the materialized view that fills it, in order and to be run one by
// one. To an Overlay, whose table must exist, they add the index on ranges of trace IDs, and the
// lookup table if it has none. They can be run again at any time.
//
// The statements do not change an existing table, whatever its schema and TTL. [Schema.Create]
// refuses a table with another schema and a server that is too old before it changes anything,
// changes the TTL, and fills a new lookup table from existing spans.
func (s Schema) Statements() ([]string, error) {
	p, err := s.Plan(context.Background(), nil)
	return p.SQL(), err
}

// steps returns the steps that Create runs on a server.
func (s Schema) steps(o server) []Step {
	n := s.named()
	steps := []Step{s.functions()}
	if !s.Overlay {
		create := s.createRows(n.rows, carried{table: table{Engine: s.engine(o, "")}})
		steps = append(steps, exists(n.rows, create))
		if s.Cluster != "" {
			steps = append(steps, s.front(n.spans, n.rows))
		}
	}
	steps = append(steps, s.lookup(o, s.quoted(n.rows))...)
	for _, name := range s.indexed() {
		steps = append(steps, s.rangeIndex(name))
	}
	return steps
}

// exists returns the step that creates a table or view.
func exists(name, sql string) Step {
	return Step{Does: name + " exists", SQL: []string{sql}}
}

// indexed returns the other programs' tables that get the index on ranges of trace IDs.
func (s Schema) indexed() (all []string) {
	if s.Overlay {
		all = append(all, s.named().spans)
	}
	if s.LogsTable != "" {
		all = append(all, s.LogsTable)
	}
	return all
}

// alter returns the beginning of a statement that changes a table.
func (s Schema) alter(name string) string {
	return "ALTER TABLE " + s.quoted(name) + s.onCluster() + " "
}

// rangeIndex returns the step that adds the index idx_trace_id_range to a table that others
// created. It has the lowest and the highest trace ID of each granule: with ordered IDs it excludes
// all granules of other times, without a condition on the time. It must be the first index:
// ClickHouse reads indexes in order, and the bloom filter is larger.
func (s Schema) rangeIndex(name string) Step {
	step := Step{
		Does: "new parts of " + name + " have the index on ranges of trace IDs",
		SQL: []string{s.alter(name) + "ADD INDEX IF NOT EXISTS idx_trace_id_range " +
			"TraceId TYPE minmax GRANULARITY 1 FIRST"},
	}
	if s.Materialize {
		step.Does = "all parts of " + name + " have the index on ranges of trace IDs"
		step.SQL = append(step.SQL, s.alter(name)+"MATERIALIZE INDEX idx_trace_id_range "+
			"SETTINGS mutations_sync = 0")
		step.wait = s.render("materializing", "{table}", quoteText(name))
	}
	return step
}
