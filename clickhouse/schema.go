package clickhouse

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Layout is the layout of the table.
type Layout int

const (
	// ServiceFirst is sorted by four hours, service, span name, trace and time: the
	// default. Services, their operations, time ranges and single traces are found by
	// the sort key.
	ServiceFirst Layout = iota
	// TraceFirst is sorted by hour, trace and time: for those who look up traces and
	// export time ranges. A search by service reads its whole range of time.
	TraceFirst
	// Overlay is the table that the Collector's exporter created.
	Overlay
)

// Schema is the name and layout of a table of spans. It is a value; all methods
// are pure except Create.
type Schema struct {
	Database string // "" is the connection's; it must exist
	Table    string // "" is otel_traces, as for the exporter
	Cluster  string // "" is one server; a macro as in {cluster} is allowed
	Layout   Layout
	TTL      time.Duration // whole seconds after a span's start; 0 keeps spans for ever

	// LogsTable is the exporter's table of logs, for [Logs]; "" is otel_logs. If it is
	// set, Create adds the index on ranges of trace IDs to it, too.
	LogsTable string

	// Slack is how long before the time of its trace ID a span may begin: by how much
	// the clocks of a fleet differ. 0 is an hour. Queries do not read what is older.
	Slack time.Duration

	// ReadOnly is for users of ClickHouse who may not change settings (readonly = 1):
	// queries by ID then send none, and read up to three times the bytes from disk.
	ReadOnly bool

	// KeepLookup keeps the exporter's lookup table of trace times, or creates it with the
	// table, in place of a view that computes the times. It is for fleets in which many IDs
	// are random: their time is not in the ID, so tools that look one up read all of the
	// bloom filters through the view. It takes two bytes a span. An Overlay keeps the lookup
	// table anyway, until DropLookup.
	KeepLookup bool
}

func (s Schema) ddl() ddl.Table {
	return ddl.Table{Database: s.Database, Name: s.Table, Cluster: s.Cluster, TTL: s.TTL, TraceFirst: s.Layout == TraceFirst, KeepLookup: s.KeepLookup}
}

func (s Schema) validate() error {
	if err := s.ddl().Validate(); err != nil {
		return err
	}
	if err := s.logs().Validate(); err != nil {
		return err
	}
	if s.Layout < ServiceFirst || s.Layout > Overlay {
		return fmt.Errorf("clickhouse: layout %d: it is ServiceFirst, TraceFirst or Overlay", s.Layout)
	}
	if s.Slack < 0 || s.Slack > maxSlack {
		return fmt.Errorf("clickhouse: slack %v: it is 0, for an hour, to %v", s.Slack, maxSlack)
	}
	return nil
}

// maxSlack is longer than any clock is wrong and keeps the bound after 1900.
const maxSlack = 365 * 24 * time.Hour

// Statements returns the statements that create the functions and, for the layouts
// other than Overlay, the tables and the views named like the exporter's lookup
// table, in order and to be run one by one. To an Overlay, whose table must exist,
// they add the index on ranges of trace IDs. They can be run again at any time.
// Before anything is changed, the first fails on a server that is too old, and the
// next ones on a table of another shape, each with an explanation.
//
// Statements does not change the TTL of an existing table: [Schema.Create] does.
func (s Schema) Statements() ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	return append(s.guards(), Plan{Steps: s.steps()}.SQL()...), nil
}

// guards fail before anything is changed.
func (s Schema) guards() []string {
	guards := append([]string{ddl.VersionGuard()}, s.indexes(ddl.Table.IndexGuard)...)
	if s.Layout != Overlay {
		guards = append(guards, s.ddl().Guards()...)
	}
	return guards
}

// steps are what Create does.
func (s Schema) steps() []Step {
	t := s.ddl()
	steps := []Step{{Does: "the functions on trace IDs exist", SQL: t.Functions()}}
	exists := func(suffix, sql string) {
		steps = append(steps, Step{Does: t.Named(suffix) + " exists", SQL: []string{sql}})
	}
	if s.Layout != Overlay {
		exists(t.Rows(), t.CreateRows(t.Rows(), ddl.Carried{}))
		if s.Cluster != "" {
			exists("", t.Front(""))
		}
		times, suffixes := t.TraceTimes(), []string{ddl.Lookup, ddl.LookupFeed}
		if len(times) > len(suffixes) {
			suffixes = append([]string{ddl.Lookup + t.Rows()}, suffixes...)
		}
		for i, suffix := range suffixes {
			exists(suffix, times[i])
		}
	}
	for i, sql := range s.indexes(ddl.Table.AddRangeIndex) {
		steps = append(steps, Step{Does: "new parts of " + s.indexes(func(t ddl.Table) string { return t.Named("") })[i] + " have the index on ranges of trace IDs", SQL: []string{sql}})
	}
	return steps
}

// indexes returns the statement for each table of others that has the index on ranges of trace IDs.
func (s Schema) indexes(statement func(ddl.Table) string) (all []string) {
	if s.Layout == Overlay {
		all = append(all, statement(s.ddl()))
	}
	if s.LogsTable != "" {
		all = append(all, statement(s.logs()))
	}
	return all
}

// logs is the table of logs.
func (s Schema) logs() ddl.Table {
	name := s.LogsTable
	if name == "" {
		name = "otel_logs"
	}
	return ddl.Table{Database: s.Database, Name: name, Cluster: s.Cluster}
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
	if s.KeepLookup {
		return nil, errors.New("clickhouse: DropLookup of a schema with KeepLookup: leave KeepLookup out")
	}
	t := s.ddl()
	return append(t.DropLookup(), t.TraceTimes()...), nil
}

// Script returns statements as a file for clickhouse-client.
func Script(statements []string) string {
	return strings.Join(statements, ";\n\n") + ";\n"
}
