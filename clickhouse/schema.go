package clickhouse

import (
	"fmt"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Layout says who shapes the table.
type Layout int

const (
	// Owned is a table sorted by trace ID, made by [Schema.Statements].
	Owned Layout = iota
	// Overlay is the table that the Collector's exporter made, untouched.
	Overlay
)

// Schema names a table of spans and says how it is laid out. It is a value; all
// methods are pure but Create.
type Schema struct {
	Database string // "" is the connection's; it must exist
	Table    string // "" is otel_traces, as for the exporter
	Cluster  string // "" is one server; a macro as in {cluster} is allowed
	Layout   Layout
	TTL      time.Duration // whole seconds after a span's start; 0 keeps spans for ever

	// Plain is an Owned table with granules of 8192 spans and without the
	// projection of root spans. It costs less CPU to store, works on servers from
	// MinPlainVersion on, and reads more: see docs/clickhouse.md.
	Plain bool
}

func (s Schema) ddl() ddl.Table {
	return ddl.Table{Database: s.Database, Name: s.Table, Cluster: s.Cluster, TTL: s.TTL, Plain: s.Plain}
}

func (s Schema) validate() error {
	if err := s.ddl().Validate(); err != nil {
		return err
	}
	if s.Layout != Owned && s.Layout != Overlay {
		return fmt.Errorf("clickhouse: layout %d: it is Owned or Overlay", s.Layout)
	}
	if s.Plain && s.Layout != Owned {
		return fmt.Errorf("clickhouse: Plain is for the layout Owned only")
	}
	return nil
}

// Statements returns what makes the functions and, for Owned, the tables and
// the views under the names of the exporter's lookup table, in order and to be
// run one by one. They may be run again at any time. The first fails on a server
// that is too old and those after it on a table of another shape, with a message
// that says so, before anything is changed.
//
// Statements does not change the TTL of a table that is there: see
// [Schema.TTLStatements].
func (s Schema) Statements() ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	t := s.ddl()
	all := []string{ddl.VersionGuard(s.oldest())}
	if s.Layout == Overlay {
		return append(append(all, t.ColumnsGuard()), t.Functions()...), nil
	}
	all = append(append(all, t.Guards()...), t.Functions()...)
	all = append(all, t.Create(t.Rows(), "", s.TTL, "")...)
	return append(all, t.Views()...), nil
}

// TTLStatements returns what gives an existing table the TTL of the schema, and
// for Overlay its lookup table too if withLookup is set. Parts are dropped when
// all of their spans are too old, as the exporter's tables do; old parts keep
// their spans until then. A TTL of 0 removes the table's, and fails if it has none.
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
	if s.Layout == Owned {
		return []string{alter(t.Rows(), "Timestamp")}, nil
	}
	all := []string{alter("", "Timestamp")}
	if withLookup {
		all = append(all, alter(ddl.Lookup, "Start"))
	}
	return all, nil
}

// DropLookup returns what replaces the exporter's lookup table of trace times,
// whatever its size, by views of the same names. The view that fills it goes
// first, so that inserts go on. Tools that ask the lookup table find their
// answer in the view, which computes it from the spans; an exporter with
// create_schema: true finds its names taken and adds nothing.
func (s Schema) DropLookup() ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	t := s.ddl()
	return append(t.DropLookup(), t.Views()...), nil
}

// Script returns statements as clickhouse-client reads them from a file.
func Script(statements []string) string {
	return strings.Join(statements, ";\n\n") + ";\n"
}
