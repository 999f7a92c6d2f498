package clickhouse

import (
	"context"
	"fmt"
	"strings"
)

// change is a statement that creates a row policy or a grant, or a note about one that cannot be
// created.
type change struct{ SQL, Undo, Note string }

// access returns the step that copies the row policies and SELECT grants of the table and the
// lookup table to the other table and the views, as far as they are missing.
func (o *adoption) access(ctx context.Context) (steps []Step, notes []string, err error) {
	other := o.other.Name
	look := func(what string) ([]change, error) {
		return read[change](ctx, o.db, o.render(what, "{on_cluster_text}", quoteText(o.onCluster()),
			"{other_text}", quoteText(o.quoted(other))))
	}
	policies, err := look("policies")
	if err != nil && !o.skipAccess {
		return nil, nil, fmt.Errorf("%w\nthis user may not see row policies, and without those of "+
			"%s everybody could read %s: grant SHOW ROW POLICIES, or continue with --skip-access",
			err, o.live.Name, other)
	}
	if err != nil {
		notes = append(notes, "row policies were not looked at: if "+o.live.Name+" has any, "+
			"create them for "+other+", too, before the swap")
	}
	grants, err := look("grants")
	if err != nil {
		notes = append(notes, "this user may not see grants: who may read only "+o.live.Name+" "+
			"needs SELECT on "+other+" and "+o.history.Name+", too, to see history")
	}
	step := Step{Does: "row policies and grants are the same for " + other + " and the views"}
	for _, c := range append(policies, grants...) {
		if c.Note != "" {
			notes = append(notes, c.Note)
			continue
		}
		step.SQL, step.Undo = append(step.SQL, c.SQL), append(step.Undo, c.Undo)
	}
	text := strings.TrimSuffix(script(step.SQL), "\n")
	switch {
	case len(step.SQL) == 0:
		return nil, notes, nil
	case o.skipAccess:
		return nil, append(notes, "somebody with the rights has to run this before the swap:\n"+
			text), nil
	}
	step.advice = "somebody with the rights has to run this, or write it into users.xml; then " +
		"run prepare again, or continue with --skip-access:\n" + text
	return []Step{step}, notes, nil
}
