package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Adoption replaces an existing table with the exporter's columns by a table of the schema, under
// the same name and without copying spans. Its tables and views, by suffix:
//
//	(none)            the table that the Collector writes into and tools read
//	_other            alongside it: the new table before Swap, the old one after it
//	_all              a view of both, for tools that show what is older than the swap
//	_all_trace_id_ts  a view of the lookup table, by the name that tools look for next to _all
//
// Swap exchanges the names of the two tables, and so does Undo. The Collector, materialized views,
// grants and row policies follow the name, so both tables share the exporter's lookup table. The
// spans of the old table expire by its TTL, and Finish drops it.
//
// Each method reads the server's tables and returns the steps that are left, none if everything is
// done. Steps may be interrupted, repeated, and run by several operators at once: a table is
// dropped only under a name that no other table can get, after a check.
type Adoption struct {
	Database string // "" is the connection's
	Table    string // the one that holds the rows, not a Distributed one; "" is otel_traces
	Cluster  string // "" is one server; a macro as in {cluster} is allowed

	// SkipAccess lets Prepare leave out row policies and grants: its notes contain the statements
	// that somebody with the rights has to run.
	SkipAccess bool
}

// Prepare returns the steps that create the new table and the views, or the missing ones, and the
// lookup table if it was dropped.
func (a Adoption) Prepare(ctx context.Context, db *sql.DB) (p Plan, err error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil:
		return p, err
	case o.phase == Finishing:
		return p, o.early("prepare")
	case o.phase == Finished:
		return p, nil
	}
	c, err := o.carried()
	if err != nil {
		return p, err
	}
	access, notes, err := o.access(ctx)
	if err != nil {
		return p, err
	}
	p.Notes = slices.Concat(c.notes, notes)
	p.Steps = slices.Concat(access, []Step{o.functions()}, o.restored())
	if !o.other.exists() {
		p.Steps = append(p.Steps, Step{
			Does: "the new table " + o.other.Name + " exists, empty",
			SQL:  []string{o.createRows(o.other.Name, c)},
		})
	}
	if !o.filled(o.server) {
		p.Steps = append(p.Steps, o.Schema.lookup(o.server, o.render("both"))...)
	}
	p.Steps = append(p.Steps, o.views(o.live.readable())...)
	return p, nil
}

// views returns the step that creates the views of both tables, if one is missing, or if the view
// of spans has other columns.
func (o *adoption) views(columns []string) []Step {
	var shown []string
	for _, c := range o.history.Columns {
		if c.Name != "_part" && c.Name != "_part_offset" {
			shown = append(shown, c.Name)
		}
	}
	slices.Sort(shown)
	if o.historyTimes.exists() && slices.Equal(shown, slices.Sorted(slices.Values(columns))) {
		return nil
	}
	return []Step{{
		Does: "the view " + o.history.Name + " shows the spans of both tables, and " +
			o.historyTimes.Name + " when their traces began and ended",
		SQL: []string{o.render("history", "{columns}", list(quoteName, columns)),
			o.render("times")},
		Undo: o.dropViews(),
	}}
}

// dropViews returns the statements that drop the views. The first that prepare creates is the last
// to be dropped, so that an interrupted command is continued.
func (o *adoption) dropViews() (all []string) {
	for _, view := range []table{o.historyTimes, o.history} {
		all = append(all, "DROP VIEW IF EXISTS "+o.quoted(view.Name)+o.onCluster()+" SYNC")
	}
	return all
}

// Swap gives the new table the name into which the Collector writes.
func (a Adoption) Swap(ctx context.Context, db *sql.DB) (p Plan, err error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil:
		return p, err
	case o.phase < Prepared:
		return p, o.early("swap")
	case o.phase > Swapped:
		return p, nil
	case o.phase == Prepared:
		if err := o.agree(); err != nil {
			return p, err
		}
	}
	return o.exchange(ctx, true)
}

// agree returns an error if the new table cannot replace the old one.
func (o *adoption) agree() error {
	wrong := func(format string, args ...any) error {
		return errorf("cannot swap: "+format, args...)
	}
	// A server with a full disk may have created a table that it cannot read again.
	if name, why := o.other.wrong(); o.other.Definition == "" || name != "" {
		if why = "column " + name + " " + why; name == "" {
			why = "its definition is empty, as a full disk leaves it"
		}
		return wrong("%s is not as prepare creates it: %s; run "+
			"`adopt cancel`, then `adopt prepare`", o.other.Name, why)
	}
	if column := o.other.lacks(o.live); column != "" {
		return wrong("column %s exists in %s but not in %s: add it there and rerun prepare",
			column, o.live.Name, o.other.Name)
	}
	here, there := ttls(o.live), ttls(o.other)
	for _, c := range append([]column{{}}, o.live.Columns...) {
		if of := quoteName(c.Name); here[of] != there[of] {
			return wrong("the TTL of %s is %q and that of %s is %q: set the same on both",
				strings.TrimSuffix(o.live.Name+"."+c.Name, "."), here[of],
				strings.TrimSuffix(o.other.Name+"."+c.Name, "."), there[of])
		}
	}
	return nil
}

// Undo gives the old table its name back, whatever was changed meanwhile. It can be repeated.
func (a Adoption) Undo(ctx context.Context, db *sql.DB) (p Plan, err error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil:
		return p, err
	case o.phase < Prepared && !o.other.exists():
		return p, nil
	case o.phase > Swapped:
		return p, errorf("cannot undo: there is no old table %s alongside "+
			"%s: for eight minutes after finish, what it printed brings it back", o.other.Name,
			o.live.Name)
	}
	return o.exchange(ctx, false)
}

// exchange returns the steps after which the new table has the name, or the old one.
func (o *adoption) exchange(ctx context.Context, toNew bool) (Plan, error) {
	role, p := "new", Plan{Steps: o.restored()}
	if !toNew {
		role = "old"
	}
	if o.live.ours() != toNew {
		exchange := []string{o.render("exchange")}
		p.Steps = append(p.Steps, Step{
			Does: "the " + role + " table has the name " + o.live.Name + ", and the other one is " +
				o.other.Name,
			SQL: exchange, Undo: exchange,
			until: o.render("exchanged", "{new}", fmt.Sprint(toNew)),
		})
		fed, err := o.readers(ctx, o.live, "NOT own AND engine = 'MaterializedView'")
		if err != nil {
			return p, err
		}
		if len(fed) > 0 {
			p.Notes = append(p.Notes, "spans of inserts that were running during the exchange may "+
				"be missing from what these materialized views fill: "+strings.Join(fed, ", "))
		}
	}
	if o.lookup.exists() {
		p.Steps = append(p.Steps, o.fill("the traces of the last ten minutes (again)",
			o.render("both"), "\n    AND Timestamp > now() - INTERVAL 10 MINUTE"))
	} else {
		p.Notes = append(p.Notes, "there is no table "+o.lookup.Name+": `adopt prepare` creates "+
			"and fills it")
	}
	if !toNew && (o.live.ours() || o.other.Rows > 0) {
		p.Notes = append(p.Notes, fmt.Sprintf("%s keeps the spans that were stored between swap "+
			"and undo, and %s shows them: `adopt copy` moves them into %s", o.other.Name,
			o.history.Name, o.live.Name))
	}
	return p, nil
}

// Cancel drops what Prepare created, unless the new table holds spans.
func (a Adoption) Cancel(ctx context.Context, db *sql.DB) (p Plan, err error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil:
		return p, err
	case o.phase == NotBegun:
		return p, nil
	case o.phase >= Swapped:
		return p, errorf("cannot cancel: the adoption of %s is %s: run undo "+
			"first", o.live.Name, o.phase)
	case o.other.Rows > 0:
		return p, errorf("cannot cancel: %s holds %d spans, which were "+
			"stored between swap and undo: move them with `adopt copy`, or wait until they have "+
			"expired", o.other.Name, o.other.Rows)
	}
	return o.end(ctx, false)
}

// Finish drops the old table, if its spans have expired or dropHistory is set, and the views.
func (a Adoption) Finish(
	ctx context.Context, db *sql.DB, dropHistory bool,
) (p Plan, err error) {
	o, err := a.state(ctx, db)
	switch {
	case err != nil:
		return p, err
	case o.phase < Swapped:
		return p, o.early("finish")
	case o.other.Rows > 0 && !dropHistory:
		return p, errorf("the old table %s still holds %d spans: wait until "+
			"they have expired (status says when), move them with `adopt copy`, or drop them with "+
			"--drop-history", o.other.Name, o.other.Rows)
	}
	return o.end(ctx, dropHistory)
}

// end returns the steps that drop the views and the other table, which must be empty unless
// evenFilled is set.
func (o *adoption) end(ctx context.Context, evenFilled bool) (Plan, error) {
	p := Plan{Steps: o.restored()}
	if len(o.copies) > 0 {
		return p, errorf("a copy was interrupted and left %s: run `adopt copy` "+
			"first", o.copies[0].Name)
	}
	for _, t := range []table{o.other, o.history} {
		readers, err := o.readers(ctx, t, "NOT own")
		if err != nil {
			return p, err
		}
		if len(readers) > 0 {
			return p, errorf("%s is read by %s: change or drop that first", t.Name,
				strings.Join(readers, ", "))
		}
	}
	if o.other.exists() {
		p.Steps = append(p.Steps, o.droppingOther(evenFilled))
	}
	if o.history.exists() || o.historyTimes.exists() {
		p.Steps = append(p.Steps, Step{Does: "the views of both tables are gone",
			SQL: o.dropViews()})
	}
	return p, nil
}
