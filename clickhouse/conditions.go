package clickhouse

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// operation is what conditions are for, as a set.
type operation int

const (
	looking   operation = 1 << iota // is the present state whole?
	beginning                       // could the table be adopted?
	creating
	preparing
	swapping
	undoing

	exchanging = swapping | undoing
	adopting   = looking | beginning | preparing | exchanging
	always     = adopting | creating
)

// conditions are what must hold of the tables before an operation changes anything. Each returns
// what is wrong and what to do, or "".
var conditions = []struct {
	of    operation
	fails func(*adoption) string
}{
	{adopting, (*adoption).notThere},
	{creating, (*adoption).conflicts},
	{adopting, (*adoption).unreadable},
	{beginning | preparing | exchanging, (*adoption).otherEngine},
	{always, (*adoption).taken},
	{beginning | preparing | swapping, (*adoption).otherColumns},
	{beginning | preparing | creating, (*adoption).ownElements},
	{exchanging, (*adoption).unprepared},
	{looking | preparing | swapping, (*adoption).unequal},
	{looking | swapping, (*adoption).incomplete},
	{looking, (*adoption).lacksParts},
}

// queries are conditions that need a query of their own.
var queries = []struct {
	of    operation
	fails func(*adoption, context.Context) error
}{
	{beginning | preparing | exchanging, (*adoption).replicas},
	{preparing | swapping, (*adoption).policies},
	{looking, (*adoption).lacksTraces},
}

// check returns the first condition that does not hold for an operation.
func (o *adoption) check(ctx context.Context, op operation) error {
	for _, c := range conditions {
		if c.of&op != 0 {
			if problem := c.fails(o); problem != "" {
				return errorf("%s", problem)
			}
		}
	}
	for _, q := range queries {
		if q.of&op != 0 {
			if err := q.fails(o, ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *adoption) notThere() string {
	if o.live.exists() {
		return ""
	}
	return "there is no table " + o.live.Name + " in database " + o.Database + ": name the table " +
		"of the Collector's exporter, or create one with create"
}

// conflicts: create would have to change the table. One with other indexes returns the same rows.
func (o *adoption) conflicts() string {
	var is string
	switch wrong, typ := o.otherColumn(false); {
	case !o.live.exists():
		return ""
	case !o.live.mergeTree():
		is = "is a " + o.live.Engine + ", not a table of spans"
	case !o.live.ours():
		is = "has another shape"
	case typ != "": // columns that are missing are added
		is = "has another shape: " + wrong.name + " has the type " + typ + ", not " + wrong.typ
	default:
		return ""
	}
	return "table " + o.live.Name + " " + is + "; it was not changed: adopt it or choose another " +
		"name"
}

// otherColumn returns the first of the exporter's columns that has another type in the table, and
// that type, or "" if it is missing and that counts. There may be none.
func (o *adoption) otherColumn(missing bool) (of exported, typ string) {
	for _, c := range columns {
		if typ := o.live.column(c.name).Type; typ != c.typ && (missing || typ != "") {
			return c, typ
		}
	}
	return exported{}, ""
}

// otherEngine: the table holds no rows, or merges spans into one.
func (o *adoption) otherEngine() string {
	if slices.Contains([]string{"MergeTree", "ReplicatedMergeTree", "SharedMergeTree"},
		o.live.Engine) {
		return ""
	}
	if database, name := o.live.distributes(); name != "" {
		return o.live.Name + " only distributes to other tables: adopt the one that holds the " +
			"rows, --database " + database + " --table " + name
	}
	return o.live.Name + " has the engine " + o.live.Engine + ": only a MergeTree, replicated, " +
		"shared or neither, can be adopted: others may merge spans into one"
}

// taken: another object has one of the names, so that inserts would fail, traces would be missing,
// or it would be changed.
func (o *adoption) taken() string {
	n := o.named()
	type named struct {
		name string
		fits bool
		is   string // if it fits
	}
	fronts := func(name, rows string) named {
		_, behind := o.table(name).distributes()
		return named{name, name == rows || behind == rows, "Distributed over " + rows}
	}
	all := []named{
		fronts(n.Spans, n.Rows), fronts(n.Lookup, n.LookupRows),
		{n.LookupRows, o.table(n.LookupRows).isLookup(),
			"the exporter's lookup table with TraceId, Start and End"},
		{n.LookupView, o.table(n.LookupView).fills(n.LookupRows, n.Rows),
			"a materialized view that fills " + n.LookupRows + " from " + n.Rows},
	}
	if !o.creates {
		const ofAdoption = "one of an adoption"
		all = append(all, named{n.Other,
			o.other.ours() != o.live.ours() && o.other.Engine == o.live.Engine, ofAdoption})
		for _, name := range []string{n.History, n.HistoryLookup, n.TrialA, n.TrialB} {
			all = append(all, named{name, o.table(name).Comment == ownComment, ofAdoption})
		}
		all = append(all, named{n.Dropped, false, "one that stays: an adoption was ended " +
			"halfway, and its name was " + n.Other})
	}
	for _, of := range all {
		if t := o.table(of.name); t.exists() && !of.fits {
			return fmt.Sprintf("%s is a %s, not %s; nothing was changed: rename it", t.Name,
				t.Engine, of.is)
		}
	}
	return ""
}

// unreadable: the table has not the columns that its status is about.
func (o *adoption) unreadable() string {
	for _, name := range []string{"Timestamp", "TraceId"} {
		if o.live.column(name).Name == "" {
			return fmt.Sprintf("%s is a %s without the column %s, not a table of spans: rename "+
				"it or choose another name", o.live.Name, o.live.Engine, name)
		}
	}
	return ""
}

// otherColumns: the table has not the exporter's columns.
func (o *adoption) otherColumns() string {
	c, is := o.otherColumn(true)
	what := "the table " + o.live.Name + " cannot be adopted: column " + c.name
	switch {
	case c.name == "":
		return ""
	case is == "":
		return what + " is missing; this is not the table of the Collector's exporter; " +
			"Coroot's own collector, for example, has another one"
	case strings.Contains(is, "JSON"):
		return what + " has the type " + is + "; tables with json: true cannot be adopted"
	}
	return fmt.Sprintf("%s has the type %q, not %s; alter the column first, if the exporter has "+
		"changed since the table was created", what, is, c.typ)
}

// ownElements: an index or a projection of the user has the name of one of ours, and would be taken
// for it.
func (o *adoption) ownElements() string {
	for _, ours := range []string{"INDEX idx_timestamp Timestamp TYPE minmax ", Charts.shown()} {
		words := strings.Fields(ours)
		named := words[0] + " " + words[1] + " "
		if strings.Contains(o.live.Definition, ", "+named) &&
			!strings.Contains(o.live.Definition, ours) && !o.live.olderCharts() {
			return fmt.Sprintf("%s has its own %s, other than that of create: give it another "+
				"name", o.live.Name, strings.ToLower(words[0])+" "+words[1])
		}
	}
	return ""
}

// unprepared: there is no other table. Undo and Swap may have nothing to do.
func (o *adoption) unprepared() string {
	if o.other.exists() {
		return ""
	}
	return fmt.Sprintf("there is no table %s: the adoption of %s is %s; %s", o.other.Name,
		o.live.Name, o.phase, o.next())
}

// unequal: a column is in one of the tables only, so that the view of both cannot be read or the
// Collector's inserts would fail, or before a swap they differ otherwise.
func (o *adoption) unequal() string {
	if !o.other.exists() {
		return ""
	}
	whole := o.phase == Prepared
	for _, pair := range [][2]table{{o.live, o.other}, {o.other, o.live}} {
		for _, column := range pair[0].definitions(whole) {
			if !slices.Contains(pair[1].definitions(whole), column) {
				return fmt.Sprintf("%s has the column `%s, and %s has not: make them equal by "+
					"ALTER TABLE, and run `adopt prepare` again", pair[0].Name, column,
					pair[1].Name)
			}
		}
	}
	if whole && o.live.ttl() != o.other.ttl() {
		return fmt.Sprintf("the TTL of %s is %q and that of %s is %q: set the same on both",
			o.live.Name, o.live.ttl(), o.other.Name, o.other.ttl())
	}
	return ""
}

// incomplete: something was dropped, or Prepare or Create has not finished.
func (o *adoption) incomplete() string {
	n := o.named()
	var missing string
	switch {
	case o.live.mergeTree() && !o.hasLookup():
		missing = n.LookupRows + " or the view that fills it is missing, so tools may not find " +
			"traces by ID"
	case o.other.exists() &&
		(!o.table(n.History).exists() || !o.table(n.HistoryLookup).exists()):
		missing = "a view of both tables is missing"
	default:
		return ""
	}
	return missing + o.repair("creates it")
}

// repair returns which command repairs the tables.
func (o *adoption) repair(does string) string {
	if o.phase == Finished {
		return ": `create` " + does
	}
	return ": `adopt prepare` " + does
}

// lacksParts: a table of ours lacks what create adds, or the server lacks functions. An adopted
// table has other indexes than these only if the old one had them.
func (o *adoption) lacksParts() string {
	if o.phase != Finished {
		return ""
	}
	var lacks []string
	for _, part := range o.missingParts() {
		if index, is := strings.CutPrefix(part.what, "index "); !is ||
			slices.Contains([]string{"idx_timestamp", "idx_trace_id"}, index) {
			lacks = append(lacks, "the "+part.what)
		}
	}
	for _, name := range o.missingFunctions() {
		lacks = append(lacks, "the function "+name)
	}
	if lacks == nil {
		return ""
	}
	return o.live.Name + " lacks " + strings.Join(lacks, ", ") + ": `create` adds what is missing"
}

// functionNames are the names of the functions on trace IDs.
var functionNames = regexp.MustCompile(`(?m)^CREATE OR REPLACE FUNCTION (\w+)`).
	FindAllStringSubmatch(template("functions"), -1)

// missingFunctions returns the names of functions that the server lacks.
func (o *adoption) missingFunctions() (names []string) {
	for _, m := range functionNames {
		if !slices.Contains(o.Functions, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// replicas returns an error if only one of several replicas would exchange its tables.
func (o *adoption) replicas(ctx context.Context) error {
	several, err := texts(ctx, o.db, o.render("adopt/replicas", o.values()))
	if err != nil || o.DatabaseEngine != "Atomic" || o.Cluster != "" || len(several) == 0 {
		return err
	}
	return errorf("%s has %s replicas: name their cluster with --cluster, and run the statements "+
		"that are printed, so that all of them exchange it", o.live.Name, several[0])
}

// lacksTraces returns an error if the lookup table lacks days.
func (o *adoption) lacksTraces(ctx context.Context) error {
	days, err := o.lackingDays(ctx)
	if err != nil || len(days) == 0 {
		return err
	}
	return errorf("%s lacks traces of %s, as after ATTACH PARTITION or with a shorter TTL, so "+
		"tools may not find them by ID%s", o.named().LookupRows, strings.Join(days, ", "),
		o.repair("adds them"))
}

// policies returns an error if the other table lacks row policies. They belong to names, so after
// the swap everybody who may read the old table would see all of its spans.
func (o *adoption) policies(ctx context.Context) error {
	missing, err := o.missing(ctx, "policies")
	switch {
	case err != nil && (o.policiesChecked || o.phase != NotBegun):
		return nil
	case err != nil: // whose own advice would not help
		return errorf("this user may not see row policies (%v), and without those of %s everybody "+
			"could read %s: let somebody with the rights run this query and the statements that "+
			"it returns, and then continue with --policies-checked:\n%s", err, o.live.Name,
			o.other.Name, o.render("adopt/policies", o.values()))
	case len(missing) > 0:
		return errorf("%s lacks row policies of %s: let somebody with the rights run this, or "+
			"write it into users.xml, and then repeat the command:\n%s", o.other.Name, o.live.Name,
			script(missing))
	}
	return nil
}
