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
	// On a cluster Newest cannot do without.
	ReadOnly bool

	// KeepLookup keeps the exporter's lookup table of trace times, or creates it with the
	// table, in place of a view that computes the times. It is for fleets in which many IDs
	// are random: their time is not in the ID, so tools that look one up read all of the
	// bloom filters through the view. It takes two bytes a span. An Overlay keeps the lookup
	// table anyway, until DropLookup. It is not for clusters.
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
	if s.KeepLookup && s.Cluster != "" {
		return errors.New("clickhouse: KeepLookup is for one server: with Cluster, views replace the lookup table")
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
// Statements does not change the TTL of an existing table: see
// [Schema.TTLStatements].
func (s Schema) Statements() ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	t := s.ddl()
	all := []string{ddl.VersionGuard()}
	if s.Layout == Overlay {
		all = append(append(all, t.ColumnsGuard()), t.Functions()...)
		return append(all, s.indexes(ddl.Table.AddRangeIndex)...), nil
	}
	all = append(append(all, t.Guards()...), t.Functions()...)
	all = append(all, t.CreateRows(t.Rows(), ddl.Carried{}))
	if s.Cluster != "" {
		all = append(all, t.Front())
	}
	return append(append(all, t.TraceTimes()...), s.indexes(ddl.Table.AddRangeIndex)...), nil
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

// TTLStatements returns the statements that set the schema's TTL on an existing
// table, and also on the lookup table if withLookup is set and the schema has one. Parts
// are dropped when all of their spans are too old, as the exporter's tables do; old parts
// keep their spans until then. A TTL of 0 removes the table's, and fails if it has none.
func (s Schema) TTLStatements(withLookup bool) ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	t := s.ddl()
	alter := func(suffix, column string) string {
		change := "REMOVE TTL"
		if s.TTL > 0 {
			change = "MODIFY TTL " + ddl.TTL(column, s.TTL)
		}
		return "ALTER TABLE " + t.Quoted(suffix) + t.OnCluster() + " " + change
	}
	all := []string{alter(t.Rows(), "Timestamp")}
	if withLookup && (s.Layout == Overlay || s.KeepLookup) {
		all = append(all, alter(ddl.Lookup, "Start"))
	}
	return all, nil
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
