package clickhouse

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// operation is what checks are for, as a set.
type operation int

const (
	looking   operation = 1 << iota // is the present state whole?
	beginning                       // could the table be adopted?
	preparing
	swapping
	undoing
	copying

	exchanging = swapping | undoing
	changing   = preparing | exchanging | copying
	always     = looking | beginning | changing
)

// checks are what must hold for operations. Each returns what is wrong and what to do. Status and
// doctor run those for looking and beginning.
var checks = []struct {
	of    operation
	fails func(o *adoption, ctx context.Context) error
}{
	{always, (*adoption).hasTable},
	{beginning | changing, (*adoption).hasRows},
	{always, (*adoption).foreign},
	{beginning | preparing | swapping, (*adoption).exporters},
	{beginning | preparing, says("names")},
	{beginning | preparing | exchanging, says("replicas")},
	{looking | preparing | exchanging, says("sides")},
	{looking | preparing | swapping | copying, says("detached")},
	{preparing | swapping, (*adoption).policies},
	{exchanging | copying, (*adoption).prepared},
	{looking | swapping, (*adoption).complete},
	{looking, (*adoption).repaired},
	{swapping, (*adoption).alike},
	{copying, (*adoption).copyable},
}

// check runs the checks for an operation, and returns the first problem.
func (o *adoption) check(ctx context.Context, op operation) error {
	for _, c := range checks {
		if c.of&op != 0 {
			if err := c.fails(o, ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *adoption) hasTable(context.Context) error {
	if o.live.exists() {
		return nil
	}
	return errorf("there is no table %s in database %s: name the table of the Collector's "+
		"exporter, or create one with create", o.live.Name, o.Database)
}

func (o *adoption) hasRows(context.Context) error {
	database, of := o.live.distributes()
	switch {
	case of != "":
		return errorf("%s only distributes to other tables: adopt the one that holds the rows, "+
			"--database %s --table %s", o.live.Name, database, of)
	case !slices.Contains([]string{"MergeTree", "ReplicatedMergeTree", "SharedMergeTree"},
		o.live.Engine):
		return errorf("%s has the engine %s: only a MergeTree, replicated, shared or neither, can "+
			"be adopted: others may merge spans into one", o.live.Name, o.live.Engine)
	}
	return nil
}

// foreign returns an error if other objects have the names of an adoption.
func (o *adoption) foreign(context.Context) error {
	wrong := func(t table) error {
		return errorf("there is a table or view %s, which does not belong to an adoption of %s: "+
			"rename or drop it", t.Name, o.live.Name)
	}
	if o.other.exists() && (o.live.ours() == o.other.ours() || o.other.Engine != o.live.Engine) {
		return wrong(o.other)
	}
	for _, t := range []table{o.history, o.historyTimes, o.table(o.live.Name + "_trial_a"),
		o.table(o.live.Name + "_trial_b")} {
		if t.exists() && t.Comment != ownComment {
			return wrong(t)
		}
	}
	if t := o.table(o.live.Name + droppedEnd); t.exists() {
		return errorf("there is a table %s: an adoption was ended halfway, so drop it or rename "+
			"it back", t.Name)
	}
	return nil
}

// exporters returns an error if the old table does not have the exporter's columns.
func (o *adoption) exporters(context.Context) error {
	name, why := o.live.wrong()
	if name == "" {
		return nil
	}
	hint := "alter the column first, if the exporter has changed since the table was created"
	if have := o.live.column(name).Type; have == "" {
		hint = "this is not the table of the Collector's exporter; Coroot's own collector, for " +
			"example, has another one"
	} else if strings.Contains(have, "JSON") {
		hint = "tables with json: true cannot be adopted"
	}
	return errorf("the table %s cannot be adopted: column %s %s; %s", o.live.Name, name, why, hint)
}

// says returns the check whose query returns a text for each problem.
func says(template string) func(*adoption, context.Context) error {
	return func(o *adoption, ctx context.Context) error {
		all, err := read[struct{ Problem string }](ctx, o.db, o.render(template,
			"{longest_end}", quoteText(longestEnd)))
		if err == nil && len(all) > 0 {
			err = errorf("%s", all[0].Problem)
		}
		return err
	}
}

// policies returns an error if the other table lacks row policies. They belong to names, so after
// the swap everybody who may read the old table would see all of its spans.
func (o *adoption) policies(ctx context.Context) error {
	missing, err := o.missing(ctx, "policies")
	switch {
	case err != nil && (o.policiesChecked || o.phase != NotBegun):
		return nil
	case err != nil:
		return fmt.Errorf("%w\nthis user may not see row policies, and without those of %s "+
			"everybody could read %s: let somebody with the rights run this query and the "+
			"statements that it returns, and then continue with --policies-checked:\n%s",
			err, o.live.Name, o.other.Name, o.access("policies"))
	case len(missing) > 0:
		return errorf("%s lacks row policies of %s: let somebody with the rights run this, or "+
			"write it into users.xml, and then repeat the command:\n%s", o.other.Name, o.live.Name,
			script(missing))
	}
	return nil
}

// prepared returns an error if there is no other table. Undo and Swap may have nothing to do.
func (o *adoption) prepared(context.Context) error {
	if o.other.exists() {
		return nil
	}
	return errorf("there is no table %s: the adoption of %s is %s; %s", o.other.Name, o.live.Name,
		o.phase, o.next())
}

// complete returns an error if prepare has not finished, or something was dropped since.
func (o *adoption) complete(context.Context) error {
	var missing string
	switch {
	case o.live.mergeTree() && !o.filled(o.server):
		missing = o.named().lookup + " or the view that fills it is missing or incomplete, so " +
			"traces are not found by ID"
	case o.other.exists() && (!o.history.exists() || !o.historyTimes.exists()):
		missing = "a view of both tables is missing"
	default:
		return nil
	}
	if o.phase == Finished {
		return errorf("%s: `create` creates and fills it", missing)
	}
	return errorf("%s: `adopt prepare` creates it", missing)
}

// functionNames are the names of the functions on trace IDs.
var functionNames = regexp.MustCompile(`(?m)^CREATE OR REPLACE FUNCTION (\w+)`).
	FindAllStringSubmatch(template("functions"), -1)

// lookupIndexes are the indexes that lookups need. An adopted table has the others only if the old
// one had them.
var lookupIndexes = []string{"index idx_timestamp", "index idx_trace_id"}

// repaired returns an error if a table outside an adoption lacks parts that create adds, or the
// server lacks functions.
func (o *adoption) repaired(ctx context.Context) error {
	if o.phase != Finished || !o.live.mergeTree() {
		return nil
	}
	var missing []string
	for _, g := range o.gaps(o.live) {
		if !strings.HasPrefix(g.what, "index ") || slices.Contains(lookupIndexes, g.what) {
			missing = append(missing, "the "+g.what)
		}
	}
	defined, err := read[struct{ Name string }](ctx, o.db,
		"SELECT name FROM system.functions WHERE origin = 'SQLUserDefined'")
	if err != nil {
		return err
	}
	for _, m := range functionNames {
		if !slices.Contains(defined, struct{ Name string }{m[1]}) {
			missing = append(missing, "the function "+m[1])
		}
	}
	if len(missing) > 0 {
		return errorf("%s lacks %s: `create` adds what is missing", o.live.Name,
			strings.Join(missing, ", "))
	}
	return nil
}

// alike returns an error if the new table cannot replace the old one.
func (o *adoption) alike(context.Context) error {
	if o.phase != Prepared {
		return nil
	}
	if column := o.live.lacking(o.other); column != "" {
		return errorf("cannot swap: %s has the column %s, and %s has not: make them equal, and "+
			"run prepare again", o.live.Name, column, o.other.Name)
	}
	if here, there := o.live.ttl(), o.other.ttl(); here != there {
		return errorf("cannot swap: the TTL of %s is %q and that of %s is %q: set the same on both",
			o.live.Name, here, o.other.Name, there)
	}
	return nil
}

// copyable returns an error if days cannot be moved from the other table.
func (o *adoption) copyable(context.Context) error {
	switch column := o.other.lacking(o.live); {
	case o.Cluster != "":
		return errorf("cannot copy on a cluster: run this on one server of each shard, without " +
			"--cluster")
	case o.live.PartitionKey != o.other.PartitionKey:
		return errorf("cannot copy: %s is partitioned by %q and %s by %q: wait until its spans "+
			"have expired", o.live.Name, o.live.PartitionKey, o.other.Name, o.other.PartitionKey)
	case column != "":
		return errorf("cannot copy: %s has the column %s, and %s has not: make them equal",
			o.other.Name, column, o.live.Name)
	}
	return nil
}
