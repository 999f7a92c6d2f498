package clickhouse

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Copy moves the spans of the other table into the one that has the name, day by day, the newest
// first: history after Swap, and the spans stored since the swap after Undo. If day is not zero,
// only this day is moved. A day in which spans were stored within the last ten minutes is left for
// later.
//
// A day is copied into a table of its own, which nobody reads, and its parts move out of the other
// table into a second one. If both have equally many spans, the copy moves into the table that has
// the name, and the second table is dropped. Between the moves the day is missing from both tables.
// A MOVE PARTITION fails if the tables were exchanged meanwhile, and the names of the two scratch
// tables end in a random text, so that two operators never use the same ones.
func (a Adoption) Copy(ctx context.Context, db *sql.DB, day time.Time) (p Plan, err error) {
	o, err := a.observe(ctx, db, copying)
	if err != nil {
		return p, err
	}
	if p.Steps, err = o.resumed(); err != nil {
		return p, err
	}
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
			p.Steps = append(p.Steps, o.transfer(of.ID+"_"+token()).steps(of.Rows)...)
		default:
			p.Notes = append(p.Notes, fmt.Sprintf("%s was written within ten minutes: its %d "+
				"spans stay in %s until you copy again", of.ID, of.Rows, o.other.Name))
		}
	}
	return p, err
}

// transfer moves a partition of the other table into the one that has the name.
type transfer struct {
	*adoption
	partition string
	copy      table // like the table that has the name
	copied    table // like the other table; it gets the spans that leave that one
}

// transfer returns the transfer whose tables have names with this end: the partition and a random
// text.
func (o *adoption) transfer(end string) transfer {
	partition, _, _ := strings.Cut(end, "_")
	return transfer{o, partition, o.table(o.live.Name + copyEnd + end),
		o.table(o.live.Name + copiedEnd + end)}
}

// render returns the steps of a template.
func (m transfer) render(name string, more ...string) []Step {
	return m.adoption.steps(name, slices.Concat(more,
		m.place("copy", m.copy.Name), m.place("copied", m.copied.Name),
		[]string{"{partition}", quoteText(m.partition)})...)
}

// steps returns the steps of the whole transfer.
func (m transfer) steps(rows uint64) []Step {
	var stored []string
	for _, c := range m.other.Columns {
		if c.stored() {
			stored = append(stored, c.Name)
		}
	}
	step := m.render("copy", "{rows}", fmt.Sprint(rows), "{other_plain}", m.other.Name,
		"{stored}", list(quoteName, stored),
		"{engine_copy}", engine(m.live), "{uuid_copy}", m.ownUUID(m.server, m.live.Engine),
		"{engine_copied}", engine(m.other), "{uuid_copied}", m.ownUUID(m.server, m.other.Engine),
		"{equal_before}", m.equal(m.copy.Name, m.other.Name),
		"{equal_after}", m.equal(m.copy.Name, m.copied.Name))
	step[0].advice = "nothing is lost: if another operator exchanged the tables or copies, too, " +
		"or if spans are being deleted or updated, copy again later; if not, a row policy hides " +
		"spans from this user, or a TTL removes them, or DELETE FROM hid them (then run ALTER " +
		"TABLE … APPLY DELETED MASK)"
	return append(step, m.placed(m.live)...)
}

// placed returns the steps that move the copy into a table. What was copied is dropped first: while
// the copy exists and is empty, its spans are known to be in their place.
func (m transfer) placed(home table) []Step {
	return m.render("place", "{home}", m.quoted(home.Name), "{home_plain}", home.Name,
		"{empty}", m.equal(m.copy.Name, ""))
}

// equal returns the query that fails if two tables do not have equally many spans of the partition.
func (m transfer) equal(one, two string) string {
	return m.adoption.render("equal", "{one}", quoteText(one), "{two}", quoteText(two),
		"{partition}", quoteText(m.partition))
}

// engineArguments matches an engine with the arguments of a replicated table: its path in Keeper,
// which no other table can have.
var engineArguments = regexp.MustCompile(`^\w+(\([^)]*\))?`)

// engine returns the engine of a table like another one.
func engine(like table) string { return engineArguments.ReplaceAllString(like.Full, like.Engine) }

// resumed returns the steps that complete interrupted transfers, or begin them again. Their
// operators may still be running: a table that could get spans meanwhile is renamed and checked
// before it is dropped.
func (o *adoption) resumed() (steps []Step, err error) {
	var ends []string
	for _, t := range o.scratch {
		ends = append(ends, scratchName.FindStringSubmatch(t.Name[len(o.live.Name):])[1])
	}
	slices.Sort(ends)
	for _, end := range slices.Compact(ends) {
		m := o.transfer(end)
		home := o.other
		if m.copy.SortingKey == o.live.SortingKey {
			home = o.live // unless the tables were exchanged since
		}
		switch {
		case m.copied.Rows == 0:
			unique := o.live.Name + copiedEnd + m.partition + "_" + token()
			again := m.render("again", "{unique}", o.quoted(unique),
				"{empty}", m.equal(unique, ""), "{end}", quoteText(end))
			again[0].restore = []string{"RENAME TABLE IF EXISTS " + o.quoted(unique) + " TO " +
				o.quoted(m.copied.Name)}
			steps = append(steps, again...)
		case m.copy.exists() && (m.copy.Rows == 0 || m.copy.Rows == m.copied.Rows):
			steps = append(steps, m.placed(home)...)
		default:
			return nil, errorf("%s holds %d spans of %s, but %s is not its copy: nothing is "+
				"lost. Copy again; if this persists and no copy is running, compare them with the "+
				"table: if it lacks them, move them back by ALTER TABLE … MOVE PARTITION; then "+
				"drop both tables",
				m.copied.Name, m.copied.Rows, m.partition, m.copy.Name)
		}
	}
	return steps, nil
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// token returns a random text for a new name.
func token() string { return strings.ToLower(rand.Text()[:8]) }
