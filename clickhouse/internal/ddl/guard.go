package ddl

import (
	"fmt"
	"strings"
)

// Guards fail if a table exists and does not match t.
func (t Table) Guards() []string {
	guards := []string{t.RowsGuard()}
	if t.Cluster != "" {
		guards = append(guards, t.guard("", t.IsFront(),
			"is not Distributed over "+t.Named(t.Rows())+" and was left as it is: adopt it or choose another name"))
	}
	return append(guards, t.LookupGuard())
}

// IndexGuard fails if there is no table that RangeIndex could be added to.
func (t Table) IndexGuard() string {
	return fmt.Sprintf("SELECT throwIf(countIf(endsWith(engine, 'MergeTree')) = 0 OR (SELECT count() FROM system.columns WHERE database = %[1]s AND table = %[2]s AND name = 'TraceId' AND type = 'String') = 0, %[3]s)\n"+
		"FROM system.tables WHERE database = %[1]s AND name = %[2]s", t.InDatabase(), QuoteText(t.Named("")),
		QuoteText("traceflake: there is no table "+t.Named("")+" with the exporter's column TraceId, of an engine like MergeTree: name the table that the Collector's exporter created"))
}

// RowsGuard is for the table that holds the rows.
func (t Table) RowsGuard() string {
	return t.guard(t.Rows(), t.IsShaped(), "has another shape and was left as it is: adopt it or choose another name")
}

// IsShaped is a condition for the table that holds the rows. A table with other
// indexes or granules is accepted: it returns the same rows.
func (t Table) IsShaped() string { return "sorting_key = " + QuoteText(t.SortingKey()) }

// IsFront is a condition for the Distributed table over the rows.
func (t Table) IsFront() string {
	return "engine = 'Distributed' AND match(create_table_query, " +
		QuoteText("[^A-Za-z0-9_-]"+t.Named(t.Rows())+"[^A-Za-z0-9_-]") + ")"
}

// guard fails if the table exists and a condition on its row in system.tables does
// not hold, or if it lacks the exporter's columns.
func (t Table) guard(suffix, condition, message string) string {
	pairs := make([]string, len(Columns))
	for i, c := range Columns {
		pairs[i] = "(" + QuoteText(c[0]) + ", " + QuoteText(c[1]) + ")"
	}
	table := t.Named(suffix)
	return fmt.Sprintf("SELECT throwIf(countIf(NOT (%s)) > 0 OR count() > 0 AND (SELECT countIf((name, type) IN (%s)) FROM system.columns WHERE database = %s AND table = %s) != %d, %s)\n"+
		"FROM system.tables WHERE database = %s AND name = %s",
		condition, strings.Join(pairs, ", "), t.InDatabase(), QuoteText(table), len(Columns),
		QuoteText("traceflake: table "+table+" "+message), t.InDatabase(), QuoteText(table))
}

// LookupGuard fails if something other than our views has their names: the exporter's own
// lookup table would remain without a view that fills it. If that table is to be kept, it
// fails if a table that holds spans has none: tools would not find those by trace ID. An empty
// one, as an interrupted Create leaves it, gets its lookup table.
func (t Table) LookupGuard() string {
	if t.KeepLookup {
		return fmt.Sprintf("SELECT throwIf(countIf(engine = 'View') > 0 OR countIf(name = %[1]s AND total_rows > 0) > 0 AND countIf(name != %[1]s) < 2, %[2]s)\n"+
			"FROM system.tables WHERE database = %[3]s AND name IN (%[1]s, %[4]s, %[5]s)",
			QuoteText(t.Named(t.Rows())), QuoteText("traceflake: table "+t.Named("")+" has no lookup table "+t.Named(Lookup)+
				" that a materialized view fills, so it cannot be kept"),
			t.InDatabase(), QuoteText(t.Named(Lookup)), QuoteText(t.Named(LookupFeed)))
	}
	return fmt.Sprintf("SELECT throwIf(count() > 0, %s)\nFROM system.tables WHERE database = %s AND name IN (%s, %s) AND (engine != 'View' OR NOT match(as_select, 'TraceId.*Start.*End'))",
		QuoteText("traceflake: table "+t.Named(Lookup)+" or "+t.Named(LookupFeed)+
			" is in the way of a view of that name: keep the lookup table, or drop it"),
		t.InDatabase(), QuoteText(t.Named(Lookup)), QuoteText(t.Named(LookupFeed)))
}
