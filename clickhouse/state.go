package clickhouse

import (
	"context"
	"database/sql"
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

// adoption is a table of spans as observed on a server, and perhaps its Adoption.
type adoption struct {
	Schema
	catalog
	db              *sql.DB
	policiesChecked bool
	creates         bool // no adoption
	phase           Phase
	live            table // that the Collector writes to
	other           table // alongside it: the new one before the swap, the old one after it
}

// ownComment is the comment of the views of an adoption, by which they are recognised: others may
// have such names, too.
const ownComment = "of an adoption by traceflake"

// observe returns the adoption as observed on the server, and an error if a condition for the
// operation does not hold.
func (a Adoption) observe(ctx context.Context, db *sql.DB, op operation) (*adoption, error) {
	s := Schema{Database: a.Database, Table: a.Table, Cluster: a.Cluster, local: true}
	return s.observe(ctx, db, op, a.PoliciesChecked)
}

// observe returns the table as observed on the server, and an error if a condition for the
// operation does not hold.
func (s Schema) observe(ctx context.Context, db *sql.DB, op operation, policiesChecked bool) (
	*adoption, error) {
	found, err := s.readCatalog(ctx, db)
	if err != nil {
		return nil, err
	}
	s.Database, s.Version = found.Database, found.Version
	n := s.named()
	o := &adoption{Schema: s, catalog: found, db: db, policiesChecked: policiesChecked,
		creates: op == creating, live: found.table(n.Rows)}
	if op != creating {
		o.other = found.table(n.Other)
	}
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
	v := s.values()
	found, err := texts(ctx, db, "SELECT name FROM system.tables WHERE database = "+
		v.Database+" AND name = "+quoteText(v.History)+" AND comment = "+quoteText(ownComment))
	if len(found) > 0 {
		s.Table = v.History
	}
	return s, err
}

// topK returns a note if row policies hide spans of the table on a version of ClickHouse that then
// returns too few rows. A user who may not see policies gets none.
func (o *adoption) topK(ctx context.Context) []string {
	const from, to = "26.4", "26.8"
	if o.db == nil || !since(o.Version, from) || since(o.Version, to) {
		return nil
	}
	found, err := texts(ctx, o.db, "SELECT name FROM system.row_policies "+
		"WHERE database = "+o.values().Database+" AND table IN ("+quoteText(o.live.Name)+", '')")
	if err != nil || len(found) == 0 {
		return nil
	}
	return []string{"with the row policies of " + o.live.Name + ", ClickHouse " + o.Version +
		" returns too few rows for ORDER BY Timestamp DESC LIMIT 10 without a condition " +
		"(ClickHouse #114073): set use_skip_indexes_for_top_k = 0 for their users"}
}
