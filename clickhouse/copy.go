package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Copy moves the spans of the other table into the table that has the name, day by day, the newest
// first: history after Swap, and the spans stored since the swap after Undo. If day is not zero,
// only this day is moved. A day in which spans were stored within the last ten minutes is left for
// later.
//
// A day is copied into a table of its own, which nobody reads, and its parts are moved out of the
// other table. If both have equally many spans, the copy is moved into the table that has the name;
// materialized views do not fire. Between the two moves the day is missing from both tables. After
// an interruption at that moment, the next Copy completes it.
func (a Adoption) Copy(ctx context.Context, db *sql.DB, day time.Time) (p Plan, err error) {
	o, err := a.read(ctx, db)
	if err == nil {
		err = o.check()
	}
	switch {
	case err != nil:
		return p, err
	case o.Cluster != "":
		return p, fmt.Errorf("clickhouse: cannot copy on a cluster: run this on one server of " +
			"each shard, without --cluster")
	case o.phase < Prepared && !o.other.exists():
		return p, o.early("copy")
	case o.phase > Swapped:
		return Plan{Phase: o.phase}, nil
	case o.live.PartitionKey != o.other.PartitionKey:
		return p, fmt.Errorf("clickhouse: cannot copy: %s is partitioned by %q and %s by %q: wait "+
			"until its spans have expired",
			o.live.Name, o.live.PartitionKey, o.other.Name, o.other.PartitionKey)
	}
	p.Phase = o.phase
	for _, c := range o.other.Columns {
		if c.stored() && !o.live.column(c.Name).stored() {
			return p, fmt.Errorf("clickhouse: cannot copy: column %s exists in %s but not in %s: "+
				"add it there", c.Name, o.other.Name, o.live.Name)
		}
	}
	p.Steps = append(o.restored(), o.resumed()...)
	type partition struct {
		ID     string
		Rows   uint64 `json:",string"`
		Closed uint8
	}
	all, err := read[partition](ctx, db, o.render("partitions"))
	for _, of := range all {
		switch {
		case !day.IsZero() && of.ID != day.Format("20060102"):
		case of.Closed == 1:
			p.Steps = append(p.Steps, o.copyOf(of.ID, of.Rows))
		default:
			p.Notes = append(p.Notes, fmt.Sprintf("%s was written within ten minutes: its %d "+
				"spans stay in %s until you copy again", of.ID, of.Rows, o.other.Name))
		}
	}
	return p, err
}

// engineArguments matches an engine with the arguments of a replicated table: its path in Keeper,
// which no other table can have.
var engineArguments = regexp.MustCompile(`^(Replicated|Shared)?MergeTree(\([^)]*\))?`)

// twin returns the statement that creates an empty table like another one.
func (o *adoption) twin(name string, of table) string {
	return "CREATE TABLE " + o.quoteFull(name) + o.ownUUID(o.server, of.Engine) + " AS " +
		o.full(of) + "\nENGINE = " + engineArguments.ReplaceAllString(of.Full, of.Engine)
}

// copyOf returns the step that copies a partition.
func (o *adoption) copyOf(partition string, spans uint64) Step {
	end := partition + "_" + token()
	into, from := table{Name: o.name.copying + end}, table{Name: o.name.copied + end}
	from.SortingKey, into.SortingKey = o.other.SortingKey, o.live.SortingKey
	var names []string
	for _, c := range o.other.Columns {
		if c.stored() {
			names = append(names, c.Name)
		}
	}
	other := table{Name: o.name.other}
	return Step{
		Does: fmt.Sprintf("the %d spans of %s are in %s", spans, partition, o.live.Name),
		SQL: slices.Concat([]string{
			o.twin(into.Name, o.live),
			o.twin(from.Name, o.other),
			o.render("copies", "{copy}", o.full(into), "{columns}", quoteNames(names),
				"{partition}", quoteText(partition)),
			o.equal(into, other, partition),
			o.move(other, from, partition),
			o.equal(into, from, partition),
		}, o.placed(into, from, partition)),
		advice: "nothing is lost: if another operator exchanged the tables or copies, too, copy " +
			"again later; if nobody did, " +
			"a row policy hides spans from this user, or a TTL or a DELETE removes them",
	}
}

// placed returns the statements that move a copy into the table that has the name, and clean up.
func (o *adoption) placed(into, from table, partition string) []string {
	return append([]string{o.move(into, o.live, partition)}, o.ended(into, from, partition)...)
}

// ended returns the statements that clean up after a copy. The partition that was copied is dropped
// first: while the copy exists and is empty, its spans are known to be in place.
func (o *adoption) ended(into, from table, partition string) []string {
	return []string{o.equal(into, table{}, partition), o.drop(from.Name), o.drop(into.Name)}
}

// move returns the statement that moves a partition to a table with the same keys; others are
// refused, and so is a table that was exchanged meanwhile.
func (o *adoption) move(from, to table, partition string) string {
	return "ALTER TABLE " + o.full(from) + " MOVE PARTITION ID " + quoteText(partition) +
		" TO TABLE " + o.full(to)
}

// equal returns the query that fails if two tables do not have equally many spans in a partition.
func (o *adoption) equal(one, two table, partition string) string {
	return o.render("equal", "{one}", quoteText(one.Name), "{two}", quoteText(two.Name),
		"{partition}", quoteText(partition))
}

// resumed returns the steps that complete interrupted copies, or move their spans back. Their
// operators may still be running: a table that could get spans meanwhile is renamed and checked.
func (o *adoption) resumed() (steps []Step) {
	done := map[string]bool{}
	for _, t := range o.copies {
		end := strings.TrimPrefix(strings.TrimPrefix(t.Name, o.name.copying), o.name.copied)
		if done[end] {
			continue
		}
		done[end] = true
		into, from := o.table(o.name.copying+end), o.table(o.name.copied+end)
		partition, _, _ := strings.Cut(end, "_")
		step := Step{Does: "the interrupted copy of " + partition + " is complete"}
		switch {
		case from.Rows == 0: // the partition is where it was
			step.Does = "the interrupted copy of " + partition + " is undone"
			step.SQL = append(o.taken(&step, from, nothing), o.drop(into.Name))
		case into.exists() && into.Rows == 0: // the copy is in its place
			step.SQL = o.ended(into, from, partition)
		case into.SortingKey == o.live.SortingKey && into.Rows == from.Rows:
			step.SQL = o.placed(into, from, partition)
		default: // spans were stored at the wrong moment, or the tables exchanged
			back := o.live
			if from.SortingKey != back.SortingKey {
				back = table{Name: o.name.other}
			}
			if into.exists() {
				steps = append(steps, Step{Does: "the copy of " + partition + " is gone"})
				last := &steps[len(steps)-1]
				last.SQL = o.taken(last, into, something)
			}
			step.Does = "the interrupted copy of " + partition + " is undone"
			step.SQL = append([]string{o.move(from, back, partition)},
				o.taken(&step, from, nothing)...)
		}
		steps = append(steps, step)
	}
	return steps
}

// taken returns the statements that drop a table of a step if its content is as expected, under a
// new name by which a later Copy still recognises it.
func (o *adoption) taken(step *Step, t table, holds holding) []string {
	if !t.exists() {
		return nil
	}
	name := t.Name[:strings.LastIndexByte(t.Name, '_')+1] + token()
	step.restore = []string{o.rename(name, t.Name)}
	return []string{o.rename(t.Name, name), o.still(name, []string{t.UUID}, holds), o.drop(name)}
}
