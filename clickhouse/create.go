package clickhouse

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
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
	if db == nil {
		if err := s.validate(); err != nil {
			return p, err
		}
		return Plan{Steps: s.steps(catalog{})}, nil
	}
	o, err := s.observe(ctx, db, creating, false)
	if err != nil {
		return p, err
	}
	s.Version = o.Version
	stored := o.table(s.named().Rows)
	p = Plan{append(s.steps(o.catalog), s.repairs(stored)...), s.notes(o.catalog)}
	if stored.exists() && s.hasLookup(o.catalog) {
		days, err := s.lacking(ctx, db, stored)
		if err != nil {
			return p, err
		}
		if len(days) > 0 {
			p.Steps = append(p.Steps, s.fillDays(s.quoted(stored.Name), days))
		}
	}
	p.Notes = append(p.Notes, o.topK(ctx)...)
	return p, nil
}

// notes returns what is different in the existing tables, and how an operator can change it.
func (s Schema) notes(o catalog) (notes []string) {
	n := s.named()
	for _, of := range []struct{ table, column string }{
		{n.Rows, "Timestamp"}, {n.LookupRows, "End"}} {
		t := o.table(of.table)
		if want := s.ttlOf(of.column); s.TTL != 0 && t.exists() && t.ttl() != want {
			notes = append(notes, fmt.Sprintf("the TTL of %s stays %q; to change it, run\n%s;",
				t.Name, t.ttl(), s.alter(t.Name)+"MODIFY TTL "+want))
		}
	}
	return append(notes, s.rebuild(o.table(n.Rows))...)
}

// functions returns the step that creates the functions on trace IDs, which belong to the server,
// not to a database.
func (s Schema) functions() Step {
	step := Step{Does: "create the functions on trace IDs"}
	for statement := range strings.SplitSeq(template("functions"), ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			step.SQL = append(step.SQL,
				strings.Replace(statement, " AS (", s.onCluster()+" AS (", 1))
		}
	}
	return step
}
