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
// the name, and both tables are dropped. Between the moves the day is missing from both tables. A
// MOVE PARTITION fails if the tables were exchanged meanwhile.
//
// The names of the two tables end in a random text, and a copy stops if it finds those of another
// one. Only the next Copy takes over: it renames them, waits until no statement uses them, and
// undoes the day or completes it.
func (a Adoption) Copy(ctx context.Context, db *sql.DB, day time.Time) (p Plan, err error) {
	o, err := a.observe(ctx, db, copying)
	if err != nil {
		return p, err
	}
	all, err := read[partition](ctx, db, o.render("partitions"))
	if err != nil {
		return p, err
	}
	for _, end := range o.interrupted {
		m := o.transfer(end)
		steps, err := m.takeover()
		if err != nil {
			return p, err
		}
		p.Steps = append(p.Steps, steps...)
		if m.copied.Rows > 0 && m.copy.Rows > 0 && !slices.ContainsFunc(all,
			func(of partition) bool { return of.ID == m.partition }) {
			all = append(all, partition{m.partition, m.copied.Rows, 1}) // which returns first
		}
	}
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
	return p, nil
}

// partition is a day of the other table.
type partition struct {
	ID     string
	Rows   uint64 `json:",string"`
	Closed uint8  // 1 if nothing was stored lately
}

// transfer moves a partition of the other table into the one that has the name.
type transfer struct {
	*adoption
	partition, token string
	copied           table // like the other table; it gets the spans that leave that one
	copy             table // like the table that has the name
}

// transfer returns the transfer whose tables have names with this end: the partition and a random
// text.
func (o *adoption) transfer(end string) transfer {
	partition, token, _ := strings.Cut(end, "_")
	return transfer{o, partition, token, o.table(o.live.Name + copiedEnd + end),
		o.table(o.live.Name + copyEnd + end)}
}

// render returns the steps of a template.
func (m transfer) render(name string, more ...string) []Step {
	return m.adoption.steps(name, slices.Concat(more,
		m.place("copy", m.copy.Name), m.place("copied", m.copied.Name),
		[]string{"{partition}", quoteText(m.partition), "{token}", quoteText(m.token),
			"{engine_live}", engine(m.live), "{uuid_live}", m.ownUUID(m.server, m.live.Engine),
			"{engine_other}", engine(m.other),
			"{uuid_other}", m.ownUUID(m.server, m.other.Engine)})...)
}

// steps returns the steps of the whole transfer.
func (m transfer) steps(rows uint64) []Step {
	var stored []string
	for _, c := range m.other.Columns {
		if c.stored() {
			stored = append(stored, c.Name)
		}
	}
	steps := m.render("copy", "{rows}", fmt.Sprint(rows), "{other_plain}", m.other.Name,
		"{live_plain}", m.live.Name, "{stored}", list(quoteName, stored),
		"{equal_before}", m.equal(m.other.Name), "{equal_after}", m.equal(m.copied.Name))
	steps[0].advice = "nothing is lost: if another operator exchanged the tables or copies, too, " +
		"or if spans are being deleted or updated, copy again later; if not, a row policy hides " +
		"spans from this user, or a TTL removes them, or DELETE FROM hid them (then run ALTER " +
		"TABLE … APPLY DELETED MASK)"
	return steps
}

// equal returns the query that fails if a table does not have as many spans of the partition as the
// copy.
func (m transfer) equal(original string) string {
	return m.adoption.render("equal", "{one}", quoteText(m.copy.Name), "{two}", quoteText(original),
		"{partition}", quoteText(m.partition))
}

// engineArguments matches an engine with the arguments of a replicated table: its path in Keeper,
// which no other table can have.
var engineArguments = regexp.MustCompile(`^\w+(\([^)]*\))?`)

// engine returns the engine of a table like another one.
func engine(like table) string { return engineArguments.ReplaceAllString(like.Full, like.Engine) }

// takeover returns the steps that end an interrupted transfer, whose operator may still be running.
// A statement that has found a table continues although the table is renamed, but once the table is
// detached, ClickHouse attaches it only when no statement uses it any more.
func (m transfer) takeover() ([]Step, error) {
	if m.copied.Rows > 0 && !m.copy.exists() {
		return nil, errorf("%s has spans, and there is no %s, as after a crash of the server: "+
			"copy again; if this persists, compare them with those of %s, and drop the table "+
			"or move them back by ALTER TABLE … MOVE PARTITION", m.copied.Name, m.copy.Name,
			m.live.Name)
	}
	to := m.transfer(m.partition + "_" + token())
	if m.copied.SortingKey == m.live.SortingKey || m.copy.SortingKey == m.other.SortingKey {
		exchanged := *m.adoption // since the transfer began
		exchanged.live, exchanged.other = m.other, m.live
		m.adoption = &exchanged
	}
	placed, back := m.copied.Rows > 0 && m.copy.Rows == 0, ""
	if !placed {
		back = "ALTER TABLE " + m.quoted(to.copied.Name) + " MOVE PARTITION ID " +
			quoteText(m.partition) + " TO TABLE " + m.quoted(m.other.Name) + ";\n"
	}
	return m.render("takeover", slices.Concat(m.place("to_copied", to.copied.Name),
		m.place("to_copy", to.copy.Name),
		[]string{"{placed}", fmt.Sprint(placed), "{return}", back})...), nil
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// token returns a random text for a new name.
func token() string { return strings.ToLower(rand.Text()[:8]) }
