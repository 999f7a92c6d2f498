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
		return p, errorf("cannot copy on a cluster: run this on one server of " +
			"each shard, without --cluster")
	case o.phase < Prepared && !o.other.exists():
		return p, o.early("copy")
	case o.phase > Swapped:
		return p, nil
	case o.live.PartitionKey != o.other.PartitionKey:
		return p, errorf("cannot copy: %s is partitioned by %q and %s by %q: wait "+
			"until its spans have expired",
			o.live.Name, o.live.PartitionKey, o.other.Name, o.other.PartitionKey)
	}
	if column := o.live.lacks(o.other); column != "" {
		return p, errorf("cannot copy: column %s exists in %s but not in %s: "+
			"add it there", column, o.other.Name, o.live.Name)
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
			does := fmt.Sprintf("the %d spans of %s are in %s", of.Rows, of.ID, o.live.Name)
			p.Steps = append(p.Steps, o.transfer(of.ID+"_"+token()).begin(does))
		default:
			p.Notes = append(p.Notes, fmt.Sprintf("%s was written within ten minutes: its %d "+
				"spans stay in %s until you copy again", of.ID, of.Rows, o.other.Name))
		}
	}
	return p, err
}

// transfer moves a partition from the other table into the one that has the name. Its spans are
// copied, and then leave the other table; then the copy moves into the table that has the name.
type transfer struct {
	*adoption
	partition string
	copy      table // like the table that has the name
	taken     table // like the other table; it gets the spans that leave that one
}

// transfer returns the transfer whose tables have names with this end: the partition and a random
// text.
func (o *adoption) transfer(end string) transfer {
	partition, _, _ := strings.Cut(end, "_")
	return transfer{o, partition, o.table(o.live.Name + copyEnd + end),
		o.table(o.live.Name + copiedEnd + end)}
}

// begin returns the step that makes the whole transfer.
func (m transfer) begin(does string) Step {
	var columns []string
	for _, c := range m.other.Columns {
		if c.stored() {
			columns = append(columns, c.Name)
		}
	}
	return Step{
		Does: does,
		SQL: slices.Concat([]string{
			m.empty(m.copy, m.live),
			m.empty(m.taken, m.other),
			m.render("copies", "{copy}", m.quoted(m.copy.Name),
				"{columns}", list(quoteName, columns), "{partition}", quoteText(m.partition)),
			m.equal(m.copy, m.other),
			m.move(m.other, m.taken),
			m.equal(m.copy, m.taken),
		}, m.place()),
		advice: "nothing is lost: if another operator exchanged the tables or copies, too, or if " +
			"spans are being deleted or updated, copy again later; if not, a row policy hides " +
			"spans from this user, or a TTL removes them, or DELETE FROM hid them (then run " +
			"ALTER TABLE … APPLY DELETED MASK)",
	}
}

// place returns the statements that move the copy into the table that has the name, and clean up.
func (m transfer) place() []string {
	return append([]string{m.move(m.copy, m.live)}, m.cleanUp()...)
}

// cleanUp returns the statements that end a transfer whose copy is in its place. What was taken is
// dropped first: while the copy exists and is empty, its spans are known to be in place.
func (m transfer) cleanUp() []string {
	return []string{m.equal(m.copy, table{}), m.drop(m.taken.Name), m.drop(m.copy.Name)}
}

// engineArguments matches an engine with the arguments of a replicated table: its path in Keeper,
// which no other table can have.
var engineArguments = regexp.MustCompile(`^(Replicated|Shared)?MergeTree(\([^)]*\))?`)

// empty returns the statement that creates an empty table like another one.
func (m transfer) empty(t, like table) string {
	engine := engineArguments.ReplaceAllString(like.Full, like.Engine)
	return "CREATE TABLE " + m.quoted(t.Name) + m.ownUUID(m.server, like.Engine) + " AS " +
		m.quoted(like.Name) + "\nENGINE = " + engine + "\nCOMMENT " + quoteText(ownComment)
}

// move returns the statement that moves the partition to a table with the same keys; others are
// refused, and so is a table that was exchanged meanwhile.
func (m transfer) move(from, to table) string {
	return "ALTER TABLE " + m.quoted(from.Name) + " MOVE PARTITION ID " + quoteText(m.partition) +
		" TO TABLE " + m.quoted(to.Name)
}

// equal returns the query that fails if two tables do not have equally many spans of the partition.
func (m transfer) equal(one, two table) string {
	return m.render("equal", "{one}", quoteText(one.Name), "{two}", quoteText(two.Name),
		"{partition}", quoteText(m.partition))
}

// resumed returns the steps that complete interrupted transfers, or move their spans back. Their
// operators may still be running: a table that could get spans meanwhile is renamed and checked.
func (o *adoption) resumed() (steps []Step) {
	var ends []string
	for _, t := range o.copies {
		end := strings.TrimPrefix(t.Name, o.live.Name+copyEnd)
		ends = append(ends, strings.TrimPrefix(end, o.live.Name+copiedEnd))
	}
	slices.Sort(ends)
	for _, end := range slices.Compact(ends) {
		steps = append(steps, o.transfer(end).resume()...)
	}
	return steps
}

func (m transfer) resume() []Step {
	complete := "the interrupted copy of " + m.partition + " is complete"
	undone := "the interrupted copy of " + m.partition + " is undone"
	switch {
	case m.taken.Rows == 0: // the partition is where it was
		return append(m.gone(undone, m.taken, nothing),
			Step{Does: "its copy is gone", SQL: []string{m.drop(m.copy.Name)}})
	case m.copy.exists() && m.copy.Rows == 0: // the copy is in its place
		return []Step{{Does: complete, SQL: m.cleanUp()}}
	case m.copy.SortingKey == m.live.SortingKey && m.copy.Rows == m.taken.Rows:
		return []Step{{Does: complete, SQL: m.place()}}
	}
	// Spans were stored at the wrong moment, or the tables exchanged.
	from := m.live
	if from.SortingKey != m.taken.SortingKey {
		from = m.other
	}
	return slices.Concat(
		m.gone("the copy of "+m.partition+" is gone", m.copy, something),
		[]Step{{Does: "the spans of " + m.partition + " are back in " + from.Name,
			SQL: []string{m.move(m.taken, from)}}},
		m.gone(undone, m.taken, nothing))
}

// gone returns the step that drops a table of the transfer, which must have spans or none. Its new
// name is one by which a later Copy still recognises it.
func (m transfer) gone(does string, t table, e expected) []Step {
	if !t.exists() {
		return nil
	}
	unique := t.Name[:strings.LastIndexByte(t.Name, '_')+1] + token()
	return []Step{m.dropping(does, t, unique, e)}
}
