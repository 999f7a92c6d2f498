package clickhouse

import (
	"fmt"
	"strings"
)

// guards fail before anything is changed.
func (s Schema) guards() []string {
	guards := []string{versionGuard()}
	for _, t := range s.indexed() {
		guards = append(guards, t.indexGuard())
	}
	if s.Layout == Overlay {
		return guards
	}
	// A table with other indexes or granules is accepted: it returns the same rows.
	guards = append(guards, s.guard(s.rows(), "sorting_key = "+quoteText(s.sortingKey()), "has another shape"))
	if s.Cluster != "" {
		rows := s.named(s.rows())
		guards = append(guards, s.guard("", "engine = 'Distributed' AND match(create_table_query, "+quoteText("[^A-Za-z0-9_-]"+rows+"[^A-Za-z0-9_-]")+")",
			"is not Distributed over "+rows))
	}
	return append(guards, s.lookupGuard())
}

// guard fails if the table exists and a condition on its row in system.tables does
// not hold, or if it lacks the exporter's columns.
func (s Schema) guard(suffix, condition, is string) string {
	pairs := make([]string, len(columns))
	for i, c := range columns {
		pairs[i] = "(" + quoteText(c[0]) + ", " + quoteText(c[1]) + ")"
	}
	return fmt.Sprintf("SELECT throwIf(countIf(NOT (%s)) > 0 OR count() > 0 AND (SELECT countIf((name, type) IN (%s)) FROM system.columns WHERE %s) != %d, %s)\n"+
		"FROM system.tables WHERE %s", condition, strings.Join(pairs, ", "), s.at("table", suffix), len(columns),
		quoteText("traceflake: table "+s.named(suffix)+" "+is+" and was left as it is: adopt it or choose another name"), s.at("name", suffix))
}

// indexGuard fails if there is no table that the index on ranges of trace IDs could be added to.
func (s Schema) indexGuard() string {
	return fmt.Sprintf("SELECT throwIf(countIf(endsWith(engine, 'MergeTree')) = 0 OR (SELECT count() FROM system.columns WHERE %s AND name = 'TraceId' AND type = 'String') = 0, %s)\n"+
		"FROM system.tables WHERE %s", s.at("table", ""),
		quoteText("traceflake: there is no table "+s.named("")+" with the exporter's column TraceId, of an engine like MergeTree: name the table that the Collector's exporter created"), s.at("name", ""))
}

// lookupGuard fails if something other than our views has their names: the exporter's own
// lookup table would remain without a view that fills it. If that table is to be kept, it
// fails if a table that holds spans has none: tools would not find those by trace ID. An empty
// one, as an interrupted Create leaves it, gets its lookup table.
func (s Schema) lookupGuard() string {
	names := fmt.Sprintf("\nFROM system.tables WHERE database = %s AND name IN (%s, %s", s.inDatabase(), quoteText(s.named(lookup)), quoteText(s.named(lookupFeed)))
	if s.KeepLookup {
		rows := quoteText(s.named(s.rows()))
		return fmt.Sprintf("SELECT throwIf(countIf(engine = 'View') > 0 OR countIf(name = %[1]s AND total_rows > 0) > 0 AND countIf(name != %[1]s) < 2, %[2]s)", rows,
			quoteText("traceflake: table "+s.named("")+" has no lookup table "+s.named(lookup)+" that a materialized view fills, so it cannot be kept")) + names + ", " + rows + ")"
	}
	return "SELECT throwIf(count() > 0, " + quoteText("traceflake: table "+s.named(lookup)+" or "+s.named(lookupFeed)+
		" is in the way of a view of that name: keep the lookup table, or drop it") + ")" + names + ") AND (engine != 'View' OR NOT match(as_select, 'TraceId.*Start.*End'))"
}
