package clickhouse

import (
	"context"
	"database/sql"
	"slices"
)

// Phase is the progress of an [Adoption], as the tables show it.
type Phase int

// The phases of an adoption, in their order.
const (
	NotBegun Phase = iota // the old table alone
	Prepared              // the old table has the name, and the new one is alongside
	Swapped               // the new table has the name, and the old one is alongside
	Finished              // the new table alone
)

// String returns the state of the adoption, as text.
func (p Phase) String() string {
	return [...]string{"not begun", "prepared", "swapped", "finished"}[p]
}

// adoption is an Adoption as observed on a server.
type adoption struct {
	Schema
	server
	db              *sql.DB
	policiesChecked bool
	phase           Phase
	live            table // that the Collector writes to
	other           table // alongside it: the new one before the swap, the old one after it
}

// The ends of the names of an adoption's tables and views, after that of the table.
const (
	otherEnd        = "_other"
	historyEnd      = "_all"
	historyTimesEnd = "_all_trace_id_ts"
	droppedEnd      = "_dropped" // to be dropped
)

// ownComment is the comment of the views of an adoption, by which they are recognised: others may
// have such names, too.
const ownComment = "of an adoption by traceflake"

// observe returns the adoption as observed on the server, and an error if a check for the operation
// fails.
func (a Adoption) observe(ctx context.Context, db *sql.DB, op operation) (*adoption, error) {
	s := Schema{Database: a.Database, Table: a.Table, Cluster: a.Cluster, local: true}
	found, err := s.look(ctx, db)
	if err != nil {
		return nil, err
	}
	s.Database, s.Version = found.database, found.version
	s.Projection = a.Projection
	name := s.named().spans
	o := &adoption{Schema: s, server: found, db: db, policiesChecked: a.PoliciesChecked,
		live: found.table(name), other: found.table(name + otherEnd)}
	switch {
	case o.live.ours() && o.other.exists():
		o.phase = Swapped
	case o.live.ours():
		o.phase = Finished
	case o.other.exists():
		o.phase = Prepared
	}
	return o, o.check(ctx, op)
}

// Whole returns the schema of the view of both tables if the table is in an [Adoption], or s: after
// Swap the table itself lacks older spans.
func (s Schema) Whole(ctx context.Context, db *sql.DB) (Schema, error) {
	view := s.named().spans + historyEnd
	found, err := read[table](ctx, db, "SELECT name FROM system.tables WHERE database = "+
		s.inDatabase()+" AND name = "+quoteText(view)+" AND comment = "+quoteText(ownComment))
	if len(found) > 0 {
		s.Table = view
	}
	return s, err
}

// render returns a template of an adoption, filled in; see [Schema.render].
func (o *adoption) render(name string, more ...string) string {
	return o.Schema.render("adopt/"+name, slices.Concat(more,
		o.place("live", o.live.Name), o.place("other", o.other.Name),
		o.place("history", o.live.Name+historyEnd),
		o.place("history_times", o.live.Name+historyTimesEnd),
		o.place("dropped", o.live.Name+droppedEnd),
		o.place("trial_a", o.live.Name+"_trial_a"), o.place("trial_b", o.live.Name+"_trial_b"),
		[]string{"{comment}", quoteText(ownComment), "{on_cluster_text}",
			quoteText(o.onCluster())})...)
}
