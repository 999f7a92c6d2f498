package clickhouse

import (
	_ "embed" // the SQL
	"fmt"
	"strings"
	"time"
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
// methods are pure but Create and Migrate.
type Schema struct {
	Database string // "" is the connection's; it must exist
	Table    string // "" is otel_traces, as for the exporter
	Cluster  string // "" is one server; a macro as in {cluster} is allowed
	Layout   Layout
	TTL      time.Duration // whole seconds after a span's start; 0 keeps spans for ever
}

//go:embed sql/columns.sql
var columns string

// shard spreads traces evenly, keeps each on one shard, and is defined for any
// text. The high half would send all of a minute to one shard.
const shard = "reinterpretAsUInt64(reverse(unhex(substring(TraceId, 17, 16))))"

// Statements returns what makes the functions and, for Owned, the tables, in
// order and to be run one by one. They may be run again at any time. The first
// fails on a server that is too old and those after it on a table of another
// shape, with a message that says so, before anything is changed.
//
// Statements does not change the TTL of a table that is there: see
// [Schema.TTLStatements].
func (s Schema) Statements() ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	all := append([]string{s.versionGuard()}, s.shapeGuards()...)
	all = append(all, functionStatements(s.Cluster)...)
	if s.Layout == Owned {
		all = append(all, s.createTables(s.local(), "", s.TTL, "")...)
	}
	return all, nil
}

// createTables makes the tables of the owned layout: the one that holds the rows
// and, on a cluster, the Distributed table in front of it. Both are suffixes.
// note is the first one's comment.
func (s Schema) createTables(rows, front string, ttl time.Duration, note string) []string {
	engine := "MergeTree"
	if s.Cluster != "" {
		engine = "ReplicatedMergeTree"
	}
	var ttlClause string
	if ttl > 0 {
		ttlClause = "\nTTL " + ttlExpression("Timestamp", ttl)
	}
	if note != "" {
		note = "\nCOMMENT " + quoteText(note)
	}
	// Projections have no codecs of their own: the default codec is theirs.
	table := fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s%s (
%s) ENGINE = %s
PARTITION BY toDate(Timestamp)
ORDER BY TraceId%s
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)',
    lightweight_mutation_projection_mode = 'rebuild'%s`,
		s.name(rows), onCluster(s.Cluster), columns, engine, ttlClause, note)
	if s.Cluster == "" {
		return []string{table}
	}
	return []string{table, s.createFront(rows, front, onCluster(s.Cluster))}
}

// createFront makes the Distributed table.
func (s Schema) createFront(rows, front, on string) string {
	database := s.database()
	if s.Database != "" {
		database = quoteName(s.Database)
	}
	cluster := quoteName(s.Cluster)
	if s.Cluster[0] == '{' {
		cluster = quoteText(s.Cluster)
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s AS %s\nENGINE = Distributed(%s, %s, %s, %s)",
		s.name(front), on, s.name(rows), cluster, database, quoteName(s.table()+rows), shard)
}

// TTLStatements returns what gives an existing table the TTL of the schema, and
// for Overlay its lookup table too if withLookup is set. Parts are dropped when
// all of their spans are too old, as the exporter's tables do; old parts keep
// their spans until then. A TTL of 0 removes the table's, and fails if it has none.
func (s Schema) TTLStatements(withLookup bool) ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	alter := func(table, column string) string {
		change := "REMOVE TTL"
		if s.TTL > 0 {
			change = "MODIFY TTL " + ttlExpression(column, s.TTL)
		}
		return "ALTER TABLE " + table + onCluster(s.Cluster) + " " + change
	}
	if s.Layout == Overlay {
		all := []string{alter(s.name(""), "Timestamp")}
		if withLookup {
			all = append(all, alter(s.name("_trace_id_ts"), "Start"))
		}
		return all, nil
	}
	return []string{alter(s.name(s.local()), "Timestamp")}, nil
}

func ttlExpression(column string, ttl time.Duration) string {
	return fmt.Sprintf("toDateTime(%s) + toIntervalSecond(%d)", column, int64(ttl/time.Second))
}

// DropLookup returns what removes the exporter's lookup table of trace times,
// whatever its size, its view first so that inserts go on. The queries here do
// not need it; pages of others may, such as Grafana's trace view unless it is
// told otherwise. Set create_schema: false in the exporter, which makes both
// again when it starts.
func (s Schema) DropLookup() ([]string, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	cluster := onCluster(s.Cluster)
	return []string{
		"DROP VIEW IF EXISTS " + s.name("_trace_id_ts_mv") + cluster + " SYNC",
		"DROP TABLE IF EXISTS " + s.name("_trace_id_ts") + cluster + " SYNC SETTINGS max_table_size_to_drop = 0",
	}, nil
}

// Script returns statements as clickhouse-client reads them from a file.
func Script(statements []string) string {
	return strings.Join(statements, ";\n\n") + ";\n"
}
