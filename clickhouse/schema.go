package clickhouse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

	// ReadOnly is for users of ClickHouse who may not change settings (readonly = 1):
	// queries by ID then send none, and read up to three times the bytes from disk.
	ReadOnly bool

	replicated bool // the database is: a table that is not would be on one server only
}

func (s Schema) validate() error {
	for _, part := range []struct{ what, name string }{
		{"database", s.Database}, {"table", s.Table}, {"table of logs", s.LogsTable},
	} {
		if part.name != "" && !plainName.MatchString(part.name) {
			return fmt.Errorf("clickhouse: %s %q: a name has 1 to 128 letters, digits, _ or -, "+
				"and no database in front of it", part.what, part.name)
		}
	}
	switch {
	case s.Cluster != "" && !clusterName.MatchString(s.Cluster):
		return fmt.Errorf("clickhouse: cluster %q: a name has 1 to 128 letters, digits, _ or -, "+
			"or is a macro as in {cluster}", s.Cluster)
	case s.TTL < 0 || s.TTL%time.Second != 0:
		return fmt.Errorf(
			"clickhouse: TTL %v: it is a whole number of seconds, or 0 to keep spans forever",
			s.TTL)
	case s.TTL > maxTTL:
		return fmt.Errorf("clickhouse: TTL %v: ClickHouse would count past the year 2106 and "+
			"drop spans at once; 50 years is the most", s.TTL)
	}
	return nil
}

// maxTTL keeps a span's time plus TTL within a DateTime, which wraps around.
const maxTTL = 50 * 365 * 24 * time.Hour

// Statements returns the statements that create the functions, the tables, and the views
// named like the exporter's lookup table, in order and to be run one by one. To an Overlay,
// whose table must exist, they only add the index on ranges of trace IDs. They can be run
// again at any time.
//
// They leave a table that already has the name as it is, whatever its shape and TTL:
// [Schema.Create] refuses a table of another shape and a server that is too old before
// anything is changed, and changes the TTL.
func (s Schema) Statements() ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	return Plan{Steps: s.steps()}.SQL(), nil
}

// steps are what Create does.
func (s Schema) steps() []Step {
	steps := []Step{s.functions()}
	if !s.Overlay {
		steps = append(steps, s.exists(s.rows(), s.createRows(s.rows(), carried{})))
		if s.Cluster != "" {
			steps = append(steps, s.front(""))
		}
		steps = slices.Concat(steps, s.outliers(s.quoted(s.rows()), s.engine(), s.ttlClause("End")),
			s.traceTimes())
	}
	for _, t := range s.indexed() {
		steps = append(steps,
			Step{Does: "new parts of " + t.named("") + " have the index on ranges of trace IDs",
				SQL: []string{t.addRangeIndex()}})
	}
	return steps
}

// exists is the step that creates the table or view with a suffix.
func (s Schema) exists(suffix, sql string) Step {
	return Step{Does: s.named(suffix) + " exists", SQL: []string{sql}}
}

// indexed are the tables of others that get the index on ranges of trace IDs.
func (s Schema) indexed() (all []Schema) {
	if s.Overlay {
		all = append(all, s)
	}
	if s.LogsTable != "" {
		all = append(all, s.logs())
	}
	return all
}

// logs is the table of logs.
func (s Schema) logs() Schema {
	return Schema{Database: s.Database, Table: cmp.Or(s.LogsTable, "otel_logs"), Cluster: s.Cluster,
		Overlay: true}
}

// DropLookup returns the statements that replace the exporter's lookup table of
// trace times, whatever its size, by views of the same names. The view that fills
// it is dropped first, so that inserts still work. Tools that query the lookup
// table then query the view, which computes the times from the spans; an exporter
// with create_schema: true finds the names taken and adds nothing.
func (s Schema) DropLookup() ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	return append([]string{
		"DROP VIEW IF EXISTS " + s.quoted(lookupFeed) + s.onCluster() + " SYNC",
		"DROP TABLE IF EXISTS " + s.quoted(lookup) + s.onCluster() +
			" SYNC SETTINGS max_table_size_to_drop = 0",
	}, Plan{Steps: s.traceTimes()}.SQL()...), nil
}

// Script returns statements as a file for clickhouse-client.
func Script(statements []string) string {
	return strings.Join(statements, ";\n\n") + ";\n"
}
