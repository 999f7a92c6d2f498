package clickhouse

import (
	"cmp"
	"context"
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
	TTL      time.Duration // whole seconds after a span's start; 0 keeps spans forever

	// Projection is what the table stores a second time. "" is Charts for a new table, and leaves
	// an existing one as it is.
	Projection Projection

	// Version is that of the server, as version() returns it, which determines whether a new table
	// has the newest spans first. [Schema.Create] and [Schema.Plan] ask the server; without a
	// server, "" is a version of which that is not known, and the table has the oldest first.
	Version string

	local bool // on a Cluster, Table is the table with the rows of one server
}

// Projection is what a table stores a second time, sorted by service, span name and time.
type Projection string

// Projections.
const (
	// Charts has six narrow columns, with which rates, percentiles and error rates of a service
	// cost as much as in the exporter's table: Timestamp, ServiceName, SpanName, SpanKind,
	// StatusCode and Duration. With _part_offset it is also an index for rare spans of a service.
	Charts Projection = "charts"
	// NoProjection stores nothing twice: charts of one service read the columns that they name of
	// all services.
	NoProjection Projection = "none"
	// AllColumns also serves lists of one service's spans over hours, for half as much disk again.
	AllColumns Projection = "all"
)

// element returns the name and the definition of the projection, or "".
func (p Projection) element() string {
	if p == NoProjection {
		return ""
	}
	return template(string(cmp.Or(p, Charts)))
}

// shown returns the definition of the projection as system.tables shows it.
func (p Projection) shown() string {
	return "PROJECTION " + strings.ReplaceAll(strings.Join(strings.Fields(p.element()), " "), "( ",
		"(")
}

func (s Schema) validate() error {
	for _, part := range []struct{ what, name string }{{"database", s.Database},
		{"table", s.Table}, {"cluster", macro.ReplaceAllString(s.Cluster, "$1")}} {
		if !plainName.MatchString(part.name) {
			return errorf("%s %q: a name has up to 128 letters, digits, _ or -, and no database "+
				"in front of it", part.what, part.name)
		}
	}
	switch {
	case s.TTL < 0 || s.TTL%time.Second != 0:
		return errorf(
			"TTL %v: it is a whole number of seconds, or 0 to keep spans forever",
			s.TTL)
	case s.TTL > maxTTL:
		return errorf("TTL %v: ClickHouse would count past the year 2106 and "+
			"drop spans at once; 50 years is the most", s.TTL)
	case !slices.Contains([]Projection{"", Charts, NoProjection, AllColumns}, s.Projection):
		return errorf("projection %q: it is charts, none or all", s.Projection)
	}
	return nil
}

// maxTTL keeps a span's time plus TTL within a DateTime, which wraps around.
const maxTTL = 50 * 365 * 24 * time.Hour

// Statements returns the statements that create the functions, the table of spans, and the
// exporter's lookup table with the materialized view that fills it, in order and to be run one by
// one. They can be run again at any time.
//
// The statements do not change an existing table, whatever its schema and TTL. [Schema.Create]
// refuses a table with another schema and a server that is too old before it changes anything,
// adds what a table lacks, and fills a new lookup table from existing spans.
func (s Schema) Statements() ([]string, error) {
	p, err := s.Plan(context.Background(), nil)
	return p.SQL(), err
}

// alter returns the beginning of a statement that changes a table.
func (s Schema) alter(name string) string {
	return "ALTER TABLE " + s.quoted(name) + s.onCluster() + " "
}
