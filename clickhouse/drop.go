package clickhouse

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// expected is what a table must hold to be dropped.
type expected int

const (
	anything expected = iota
	nothing
	something
)

// dropping returns the step that drops a table. Its name may be given to another table at any time,
// so it is first renamed to a name that no other table can get, and then checked: it must be the
// one that was seen, and hold what is expected.
func (o *adoption) dropping(does string, t table, unique string, e expected) Step {
	uuid := quoteText(t.UUID)
	if o.Cluster != "" {
		uuid = "id" // each server may have its own; the key tells the old table from the new one
	}
	return Step{
		Does: does,
		SQL: []string{
			o.rename(t.Name, unique),
			o.render("same", "{name}", quoteText(unique), "{uuid}", uuid,
				"{key}", quoteText(t.SortingKey),
				"{must_be_empty}", fmt.Sprint(e == nothing),
				"{must_be_filled}", fmt.Sprint(e == something)),
			o.drop(unique),
		},
		restore: []string{o.rename(unique, t.Name)},
	}
}

// droppingOther returns the step that drops the other table.
func (o *adoption) droppingOther(evenFilled bool) Step {
	name, expect := o.other.Name, nothing
	if evenFilled {
		expect = anything
	}
	unique := o.live.Name + droppedEnd + strings.ReplaceAll(o.other.UUID, "-", "") + "_" + token()
	does := fmt.Sprintf("the table %s is gone, with %d spans; ClickHouse removes its files after "+
		"eight minutes", name, o.other.Rows)
	step := o.dropping(does, o.other, unique, expect)
	step.Undo = []string{"UNDROP TABLE " + o.quoted(unique) + o.onCluster(), o.rename(unique, name)}
	return step
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
