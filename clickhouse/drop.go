package clickhouse

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
)

// expected is what a table must be to be dropped.
type expected struct {
	uuids         []string // one of them
	empty, filled bool     // without spans, with spans
}

// dropping returns the step that drops a table. Its name may be given to another table at any time,
// so it is first renamed to a name that no other table can get, and then checked.
func (o *adoption) dropping(does string, t table, unique string, e expected) Step {
	return Step{
		Does: does,
		SQL: []string{
			o.rename(t.Name, unique),
			o.render("same", "{name}", quoteText(unique), "{uuids}", list(quoteText, e.uuids),
				"{must_be_empty}", fmt.Sprint(e.empty), "{must_be_filled}", fmt.Sprint(e.filled)),
			o.drop(unique),
		},
		restore: []string{o.rename(unique, t.Name)},
	}
}

// droppingOther returns the step that drops the other table.
func (o *adoption) droppingOther(ctx context.Context, evenFilled bool) (Step, error) {
	uuids := []string{o.other.UUID}
	if o.Cluster != "" { // each server may have a UUID of its own
		all, err := read[table](ctx, o.db, o.render("uuids",
			"{name}", quoteText(cmp.Or(o.renamed, o.other.Name)),
			"{key}", quoteText(o.other.SortingKey)))
		if err != nil {
			return Step{}, err
		}
		for _, of := range all {
			uuids = append(uuids, of.UUID)
		}
	}
	name := o.other.Name
	unique := o.live.Name + droppedEnd + strings.ReplaceAll(o.other.UUID, "-", "") + "_" + token()
	does := fmt.Sprintf("the table %s is gone, with %d spans; ClickHouse removes its files after "+
		"eight minutes", name, o.other.Rows)
	step := o.dropping(does, o.other, unique, expected{uuids: uuids, empty: !evenFilled})
	step.Undo = []string{"UNDROP TABLE " + o.quoted(unique) + o.onCluster(), o.rename(unique, name)}
	return step, nil
}

// restored returns the steps that give the other table its name back, if an interrupted finish or
// cancel renamed it.
func (o *adoption) restored() []Step {
	if o.renamed == "" {
		return nil
	}
	return []Step{{
		Does: "the table " + o.renamed + " has its name " + o.other.Name + " again",
		SQL:  []string{o.rename(o.renamed, o.other.Name)},
	}}
}

func (o *adoption) rename(from, to string) string {
	return "RENAME TABLE IF EXISTS " + o.quoted(from) + " TO " + o.quoted(to) + o.onCluster()
}

// drop returns the statement that drops a table of any size.
func (o *adoption) drop(name string) string {
	return "DROP TABLE IF EXISTS " + o.quoted(name) + o.onCluster() +
		" SETTINGS max_table_size_to_drop = 0"
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// token returns a random text for a new name.
func token() string { return strings.ToLower(rand.Text()[:8]) }
