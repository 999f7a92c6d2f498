package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Adoption puts a table of the schema in the place of an existing one with the exporter's
// columns: under its name, and without copying spans. Its tables and views, by their suffix:
//
//	(none)            the table that the Collector writes into and tools read
//	_other            alongside it: the new table before Swap, the old one after it
//	_all              a view of both, for tools that show what is older than the swap
//	_all_trace_id_ts  the same for the exporter's lookup table
//
// Swap exchanges the names of the two tables, and so does Undo. The Collector, materialized
// views, grants and row policies follow the name. The old table ends with its TTL, and
// Finish drops it. The lookup table and the views that read it stay as they are.
//
// Table is the one that holds the rows, not a Distributed one. TTL is not for adoptions: what
// the old table has is carried over.
//
// Each method looks at the server and returns the steps that are left, none if everything is
// done. They may be interrupted, repeated, and run by several operators at once.
type Adoption Schema

// Suffixes; see Adoption.
const (
	other = "_other"
	both  = "_all"
)

// Prepare creates the new table and the views, or what is missing of them.
func (a Adoption) Prepare(ctx context.Context, db *sql.DB) (p Plan, err error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil:
		return Plan{}, err
	case o.newTable && !o.begun:
		return Plan{}, nil
	}
	c, err := o.carried()
	if err != nil {
		return Plan{}, err
	}
	p.Steps = append(p.Steps, o.functions())
	if !o.begun {
		p.Steps = append(p.Steps, Step{
			Does: "the new table " + o.named(other) + " exists, empty",
			SQL:  []string{o.createRows(other, c)},
			Undo: []string{o.drop(other, 1)},
		})
	}
	access, notes := o.access(ctx)
	p.Steps = slices.Concat(p.Steps, access, o.history(c.readable))
	p.Notes = slices.Concat(c.notes, notes)
	return p, nil
}

// history returns the steps that create the views of both tables.
func (o *adoption) history(columns []string) []Step {
	view := func(suffix, does, sql string) Step {
		return Step{Does: "the view " + o.named(suffix) + " " + does, SQL: []string{sql},
			Undo: []string{"DROP VIEW IF EXISTS " + o.quoted(suffix) + o.onCluster()}}
	}
	var steps []Step
	if !o.tables[both].exists() || slices.ContainsFunc(columns, func(name string) bool { return !o.has(both, name) }) {
		list := make([]string, len(columns))
		for i, name := range columns {
			list[i] = quoteName(name)
		}
		part := "\nSELECT " + strings.Join(list, ", ") + ", _part, _part_offset FROM "
		steps = append(steps, view(both, "shows the spans of both tables", "CREATE OR REPLACE VIEW "+o.quoted(both)+o.onCluster()+" AS"+
			part+o.quoted("")+"\nUNION ALL"+part+o.quoted(other)))
	}
	if o.tables[both+lookup].exists() {
		return steps
	}
	sql := "CREATE VIEW IF NOT EXISTS " + o.quoted(both+lookup) + o.onCluster() + " AS\nSELECT TraceId, Start, End FROM " + o.quoted(lookup)
	if !o.hasLookup() {
		of := o.Schema
		of.Table, of.Overlay = o.named(both), true
		sql = of.traceTimes()[0].SQL[0]
	}
	return append(steps, view(both+lookup, "shows when the traces of both tables began and ended", sql))
}

// Swap gives the new table the name into which the Collector writes.
func (a Adoption) Swap(ctx context.Context, db *sql.DB) (Plan, error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil:
		return Plan{}, err
	case !o.begun && !o.newTable:
		return Plan{}, fmt.Errorf("clickhouse: there is no new table alongside %s: run prepare first", o.named(""))
	case !o.begun:
		return Plan{}, nil
	}
	return o.exchange(ctx, true)
}

// Undo gives the old table its name back. Where nothing was swapped, it drops the views and
// the new table, unless that holds spans.
func (a Adoption) Undo(ctx context.Context, db *sql.DB) (Plan, error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil || !o.begun && !o.newTable:
		return Plan{}, err
	case !o.begun:
		return Plan{}, fmt.Errorf("clickhouse: there is no table %s: if finish has dropped it, UNDROP TABLE brings it back within eight minutes", o.quoted(other))
	case o.newTable:
		return o.exchange(ctx, false)
	}
	if o.tables[other].rows != "0" {
		return Plan{Notes: []string{o.kept()}}, nil
	}
	return o.end(ctx, 1)
}

// Finish drops the old table, if its spans have expired or dropHistory is set, and the views.
func (a Adoption) Finish(ctx context.Context, db *sql.DB, dropHistory bool) (Plan, error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil || !o.begun:
		return Plan{}, err
	case !o.newTable:
		return Plan{}, fmt.Errorf("clickhouse: %s is still the old table: run swap first", o.named(""))
	case dropHistory:
		return o.end(ctx, 0)
	}
	if rows := o.tables[other].rows; rows != "0" {
		return Plan{}, fmt.Errorf("clickhouse: the old table %s still holds %s spans: wait until they have expired (status says when), or drop them with --drop-history", o.named(other), rows)
	}
	return o.end(ctx, 1)
}

// exchange returns the steps that give the new table the name, or the old one.
func (o *adoption) exchange(ctx context.Context, toNew bool) (p Plan, err error) {
	if !o.tables[both].exists() {
		return p, fmt.Errorf("clickhouse: the view %s is missing: run prepare again", o.named(both))
	}
	for _, c := range o.tables[""].columns {
		if c.kind != "ALIAS" && c.kind != "MATERIALIZED" && !o.has(other, c.name) {
			return p, fmt.Errorf("clickhouse: the table %s has the column %s and %s has not: add it there, then run prepare again", o.named(""), c.name, o.named(other))
		}
	}
	if here, there := clause(o.tables[""].full, "TTL"), clause(o.tables[other].full, "TTL"); here != there {
		return p, fmt.Errorf("clickhouse: the TTL of %s is %q and that of %s is %q: set the same on both", o.named(""), here, o.named(other), there)
	}
	exchange := "EXCHANGE TABLES " + o.quoted("") + " AND " + o.quoted(other) + o.onCluster()
	role, until := "old", "0"
	if toNew {
		role, until = "new", "1"
	}
	outliers := o.outlierSchema()
	if toNew {
		p.Steps = append(p.Steps, outliers.outliers(o.quoted(""), o.tables[""].engine, o.outlierTTL())...)
	}
	if o.newTable != toNew {
		p.Steps = append(p.Steps, Step{
			Does: "the " + role + " table has the name " + o.named("") + ", and the other one is " + o.named(other),
			SQL:  []string{exchange}, Undo: []string{exchange},
			until: fmt.Sprintf("SELECT toString(countIf((%s) != %s) = 0) FROM %s WHERE %s", ours, until, o.systemTables(), o.at("name", "")),
		})
		fed, err := o.readers(ctx, "", "engine = 'MaterializedView' AND name != "+quoteText(outliers.named(outlierFeed)))
		if err != nil {
			return p, err
		}
		if len(fed) > 0 {
			p.Notes = append(p.Notes, "spans of inserts that were running during the exchange may be missing from what these materialized views fill: "+strings.Join(fed, ", "))
		}
	}
	repairs := len(p.Steps)
	if o.hasLookup() {
		p.Steps = append(p.Steps, Step{
			Does: "the lookup table " + o.named(lookup) + " has the traces of the last ten minutes (again)",
			SQL: []string{"INSERT INTO " + o.quoted(lookup) + " (TraceId, Start, End)\nSELECT TraceId, min(Timestamp), max(Timestamp) FROM " + o.quoted(both) +
				"\nWHERE TraceId != '' AND Timestamp > now() - INTERVAL 10 MINUTE GROUP BY TraceId"},
		})
	}
	if toNew {
		p.Steps = append(p.Steps, outliers.fillOutliers(o.quoted("")))
	}
	if len(p.Steps) > repairs {
		first := &p.Steps[repairs] // waits until inserts that were running during the exchange have ended
		first.SQL = append([]string{"SELECT sleep(1)"}, first.SQL...)
		if o.Cluster != "" {
			p.Notes = append(p.Notes, "each INSERT reached the shard of this server: run it on one server of each other shard")
		}
	}
	if !toNew {
		p.Notes = append(p.Notes, o.kept())
	}
	return p, nil
}

// outlierSchema is the schema whose table of outliers' times the queries use after the adoption.
func (o *adoption) outlierSchema() Schema {
	s := o.Schema
	if s.Cluster != "" {
		s.Table = strings.TrimSuffix(o.named(""), "_local")
	}
	return s
}

// outlierTTL is the clause of the table of outliers' times: after as long as the table drops spans.
func (o *adoption) outlierTTL() string {
	for _, part := range split(clause(o.tables[""].full, "TTL")) {
		if onlyDrops.MatchString(part) {
			return "\nTTL " + strings.Replace(part, "Timestamp", "End", 1)
		}
	}
	return ""
}

// kept is the note on the spans in the new table after Undo, with statements for the operator, who decides.
func (o *adoption) kept() string {
	return fmt.Sprintf("%s keeps the spans that were stored between swap and undo, and %s shows them. Drop it with its views when they have expired, or store them in the old table: "+
		"INSERT INTO %s (%[4]s) SELECT %[4]s FROM %[5]s; TRUNCATE TABLE %[5]s; then undo again", o.named(other), o.named(both), o.quoted(""), columnNames(), o.quoted(other))
}

// end returns the steps that drop the views and the other table, if that is not larger than maxBytes.
func (o *adoption) end(ctx context.Context, maxBytes int) (p Plan, err error) {
	for suffix, condition := range map[string]string{other: "name != " + quoteText(o.named(both)), both: "name != " + quoteText(o.named(both+lookup))} {
		readers, err := o.readers(ctx, suffix, condition)
		if err != nil {
			return p, err
		}
		if len(readers) > 0 {
			return p, fmt.Errorf("clickhouse: %s is read by %s: change or drop that first", o.named(suffix), strings.Join(readers, ", "))
		}
	}
	for _, suffix := range []string{both + lookup, both} {
		if t := o.tables[suffix]; t.exists() {
			p.Steps = append(p.Steps, Step{Does: "the view " + o.named(suffix) + " is gone", SQL: []string{"DROP VIEW IF EXISTS " + o.quoted(suffix) + o.onCluster() + " SYNC"}, Undo: []string{t.create}})
		}
	}
	if outliers := o.outlierSchema(); !o.newTable {
		p.Steps = append(p.Steps, Step{Does: "the times of outliers are gone", SQL: []string{
			"DROP VIEW IF EXISTS " + outliers.quoted(outlierFeed) + o.onCluster() + " SYNC",
			"DROP TABLE IF EXISTS " + outliers.quoted(outlierTimes+outliers.rows()) + o.onCluster() + " SYNC",
		}})
		if o.Cluster != "" {
			p.Steps[len(p.Steps)-1].SQL = append(p.Steps[len(p.Steps)-1].SQL, "DROP TABLE IF EXISTS "+outliers.quoted(outlierTimes)+o.onCluster()+" SYNC")
		}
	}
	p.Steps = append(p.Steps, Step{
		Does: "the table " + o.named(other) + " is gone, with " + o.tables[other].rows + " spans; ClickHouse removes its files after eight minutes",
		SQL:  []string{o.drop(other, maxBytes)},
		Undo: []string{"UNDROP TABLE " + o.quoted(other) + o.onCluster()},
	})
	return p, nil
}

// drop returns the statement that drops a table of at most so many bytes, 0 for any.
func (o *adoption) drop(suffix string, maxBytes int) string {
	return fmt.Sprintf("DROP TABLE IF EXISTS %s%s SETTINGS max_table_size_to_drop = %d", o.quoted(suffix), o.onCluster(), maxBytes)
}
