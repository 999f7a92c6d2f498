package clickhouse

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MinVersion is the oldest ClickHouse for an Owned table: it has the setting
// default_compression_codec. The functions and the queries on an Overlay take
// MinOverlayVersion. Tests run with 26.7.
const (
	MinVersion        = "25.4"
	MinOverlayVersion = "24.3"
)

var versionPrefix = regexp.MustCompile(`^(\d+)\.(\d+)`)

// CheckVersion returns an error if a server, which gave version as SELECT
// version() does, is too old for the schema.
func (s Schema) CheckVersion(version string) error {
	have := versionPrefix.FindStringSubmatch(version)
	if have == nil {
		return fmt.Errorf("clickhouse: %q is no version of ClickHouse: give what SELECT version() returns", version)
	}
	major, _ := strconv.Atoi(have[1])
	minor, _ := strconv.Atoi(have[2])
	if major*100+minor < s.minVersion() {
		return fmt.Errorf("clickhouse: the server is ClickHouse %s, which is too old: %s", version, s.tooOld())
	}
	return nil
}

// minVersion is year*100 + release.
func (s Schema) minVersion() int {
	name := MinVersion
	if s.Layout == Overlay {
		name = MinOverlayVersion
	}
	parts := versionPrefix.FindStringSubmatch(name)
	major, _ := strconv.Atoi(parts[1])
	minor, _ := strconv.Atoi(parts[2])
	return major*100 + minor
}

func (s Schema) tooOld() string {
	if s.Layout == Overlay {
		return "the functions need " + MinOverlayVersion + " or newer"
	}
	return "a table sorted by trace ID needs " + MinVersion + " or newer; use the layout Overlay until you upgrade"
}

func (s Schema) versionGuard() string {
	return fmt.Sprintf("SELECT throwIf(toUInt32(splitByChar('.', version())[1]) * 100 + toUInt32(splitByChar('.', version())[2]) < %d, %s)",
		s.minVersion(), quoteText("traceflake: the server is too old: "+s.tooOld()))
}

// exporterColumns are what the Collector's exporter writes, as system.columns
// names their types.
var exporterColumns = [][2]string{
	{"Timestamp", "DateTime64(9)"},
	{"TraceId", "String"},
	{"SpanId", "String"},
	{"ParentSpanId", "String"},
	{"TraceState", "String"},
	{"SpanName", "LowCardinality(String)"},
	{"SpanKind", "LowCardinality(String)"},
	{"ServiceName", "LowCardinality(String)"},
	{"ResourceAttributes", "Map(LowCardinality(String), String)"},
	{"ScopeName", "String"},
	{"ScopeVersion", "String"},
	{"SpanAttributes", "Map(LowCardinality(String), String)"},
	{"Duration", "UInt64"},
	{"StatusCode", "LowCardinality(String)"},
	{"StatusMessage", "String"},
	{"Events.Timestamp", "Array(DateTime64(9))"},
	{"Events.Name", "Array(LowCardinality(String))"},
	{"Events.Attributes", "Array(Map(LowCardinality(String), String))"},
	{"Links.TraceId", "Array(String)"},
	{"Links.SpanId", "Array(String)"},
	{"Links.TraceState", "Array(String)"},
	{"Links.Attributes", "Array(Map(LowCardinality(String), String))"},
}

// columnNames is the list for an INSERT and its SELECT.
func columnNames() string {
	names := make([]string, len(exporterColumns))
	for i, c := range exporterColumns {
		names[i] = quoteName(c[0])
	}
	return strings.Join(names, ", ")
}

// projection finds the one for search, its columns and its order.
var projection = regexp.MustCompile(`PROJECTION search \(\s*SELECT ([^()]+?)\s+ORDER BY ([^()]+?)\s*\)`)

// shapeGuards fail if a table is there and is not what the schema says.
func (s Schema) shapeGuards() []string {
	if s.Layout == Overlay {
		return []string{s.guard("", "1", "has not the columns of the Collector's exporter: name the table that it writes into")}
	}
	if s.Cluster == "" {
		return []string{s.rowsGuard()}
	}
	return []string{s.rowsGuard(), s.guard("", s.isFront(), "is not Distributed over "+s.table()+s.local()+" and was left as it is: migrate it or choose another name")}
}

// rowsGuard is for the table that holds the rows. Its projection may hold more
// than the one that is created here, but nothing less: searches would read the table.
func (s Schema) rowsGuard() string {
	found := projection.FindStringSubmatch(columns)
	names := strings.ReplaceAll(quoteText(found[1]), ", ", "', '")
	pattern := `PROJECTION search \(SELECT ([^()]+) ORDER BY \(?` + found[2] + `[,)]`
	return s.guard(s.local(), fmt.Sprintf("sorting_key = 'TraceId' AND hasAll(splitByString(', ', extract(create_table_query, %s)), [%s])", quoteText(pattern), names),
		"has another shape and was left as it is: migrate it or choose another name")
}

// isFront is a condition for the Distributed table over the schema's rows.
func (s Schema) isFront() string {
	return "engine = 'Distributed' AND match(create_table_query, " + quoteText("[^A-Za-z0-9_-]"+s.table()+s.local()+"[^A-Za-z0-9_-]") + ")"
}

// guard fails if the table is there and a condition on its row in system.tables
// does not hold, or it has not the exporter's columns.
func (s Schema) guard(suffix, condition, message string) string {
	pairs := make([]string, len(exporterColumns))
	for i, c := range exporterColumns {
		pairs[i] = "(" + quoteText(c[0]) + ", " + quoteText(c[1]) + ")"
	}
	table := s.table() + suffix
	return fmt.Sprintf("SELECT throwIf(countIf(NOT (%s)) > 0 OR count() > 0 AND (SELECT countIf((name, type) IN (%s)) FROM system.columns WHERE database = %s AND table = %s) != %d, %s)\n"+
		"FROM system.tables WHERE database = %s AND name = %s",
		condition, strings.Join(pairs, ", "), s.database(), quoteText(table), len(exporterColumns),
		quoteText("traceflake: table "+table+" "+message), s.database(), quoteText(table))
}
