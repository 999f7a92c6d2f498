package clickhouse

import (
	"context"
	"fmt"
	"regexp"
	"slices"
)

// operation is what checks are for, as a set.
type operation int

const (
	looking   operation = 1 << iota // is the present state whole?
	beginning                       // could the table be adopted?
	preparing
	swapping
	undoing

	exchanging = swapping | undoing
	changing   = preparing | exchanging
	always     = looking | beginning | changing
)

// checks are what must hold for operations. Each returns what is wrong and what to do; most are a
// query. Status and doctor run those for looking and beginning.
var checks = []struct {
	of    operation
	fails func(o *adoption, ctx context.Context) error
}{
	{always, says("table")},
	{beginning | changing, says("engine")},
	{always, says("foreign")},
	{beginning | preparing | swapping, says("exporter")},
	{beginning | preparing, says("name")},
	{beginning | preparing | exchanging, says("replicas")},
	{preparing | swapping, (*adoption).policies},
	{exchanging, (*adoption).prepared},
	{looking | swapping, says("whole")},
	{looking, says("parts")},
	{swapping, says("columns")},
	{swapping, says("ttl")},
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

// functions are the names of the functions on trace IDs.
var functions = func() (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^CREATE OR REPLACE FUNCTION (\w+)`).
		FindAllStringSubmatch(template("functions"), -1) {
		names = append(names, m[1])
	}
	return names
}()

// says returns the check whose query returns a text for each problem.
func says(name string, more ...string) func(*adoption, context.Context) error {
	return func(o *adoption, ctx context.Context) error {
		var types []string
		for _, c := range columns {
			types = append(types, c.typ)
		}
		all, err := read[struct{ Problem string }](ctx, o.db, o.render("check/"+name,
			slices.Concat(more, o.place("times", o.named().times), o.place("feed", o.named().feed),
				[]string{"{longest_end}", quoteText(historyTimesEnd), "{filling}", quoteText(filling),
					"{phase}", quoteText(o.phase.String()),
					"{column_names}", list(quoteText, exporters()),
					"{column_types}", list(quoteText, types),
					"{function_names}", list(quoteText, functions)})...))
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
