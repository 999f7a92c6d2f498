package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// Create runs [Schema.Plan] on the ClickHouse of db, for example from clickhouse-go's OpenDB.
// To an existing table it adds the exporter's columns, our indexes, the setting for small
// compressed blocks, and the projection that it lacks. It changes no TTL; the plan's notes contain
// the statement that does. Create can be run again at any time.
//
// Errors: the server is too old, a table has another schema, and ClickHouse's own errors, which
// contain a missing privilege.
func (s Schema) Create(ctx context.Context, db *sql.DB) error {
	p, err := s.Plan(ctx, db)
	if err != nil {
		return err
	}
	return p.Run(ctx, db, nil)
}

// Plan returns the plan that [Schema.Create] runs on the server of db. If db is nil, the plan is
// that for a server without the tables; see [Schema.Statements].
func (s Schema) Plan(ctx context.Context, db *sql.DB) (p Plan, err error) {
	o := &adoption{Schema: s}
	if db == nil {
		err = s.validate()
	} else {
		o, err = s.observe(ctx, db, creating, false)
	}
	if err != nil {
		return p, err
	}
	n := o.named()
	lookup, err := o.lookup(ctx)
	p.Steps = slices.Concat(o.steps("functions", o.values()), o.steps("spans", o.created()), lookup)
	if n.Spans != n.Rows {
		p.Steps = slices.Concat(p.Steps, o.front(n.Spans, n.Rows), o.front(n.Lookup, n.LookupRows))
	}
	p.Steps = append(p.Steps, o.repairs()...)
	p.Notes = append(o.notes(), o.topK(ctx)...)
	return p, err
}

// notes returns what is different in the existing tables, and how an operator can change it.
func (o *adoption) notes() (notes []string) {
	n := o.named()
	for _, of := range []struct{ table, column string }{
		{n.Rows, "Timestamp"}, {n.LookupRows, "End"}} {
		t := o.table(of.table)
		if want := o.ttlOf(of.column); o.TTL != 0 && t.exists() && t.ttl() != want {
			notes = append(notes, fmt.Sprintf("the TTL of %s stays %q; to change it, run\n%s;",
				t.Name, t.ttl(), o.alter(t.Name)+"MODIFY TTL "+want))
		}
	}
	if o.Projection == "" && o.live.olderCharts() {
		notes = append(notes, "the projection charts of "+n.Rows+" has no _part_offset, so "+
			"searches for rare spans of a service read more than they could:\n"+
			"`create --projection charts` builds it again for all stored spans")
	}
	return notes
}
