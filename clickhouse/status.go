package clickhouse

import (
	"context"
	"database/sql"
)

// Status is the state of an [Adoption], or of any table of spans.
type Status struct {
	Version  string // of the server
	Phase    Phase
	Problem  error // what is wrong with the tables, and what to do
	Obstacle error // why the table cannot be adopted
	Tables   []TableStatus
	Notes    []string
	Next     string // what an operator can do next
}

// TableStatus describes a table.
type TableStatus struct {
	Table string // with its database
	New   bool   // is the new one of an adoption that has not ended
	Facts []Fact
}

// Fact is a property of a table, as text.
type Fact struct{ Name, Value string }

// Status returns the state of the table and, during an adoption, of the other table.
func (a Adoption) Status(ctx context.Context, db *sql.DB) (s Status, err error) {
	o, err := a.observe(ctx, db, looking)
	if o == nil {
		return s, err
	}
	if s.Version = o.Version; !o.live.exists() {
		return s, err
	}
	s.Phase, s.Problem, s.Notes, s.Next = o.phase, err, o.topK(ctx), o.next()
	if s.Phase == NotBegun {
		s.Obstacle = o.check(ctx, beginning)
	}
	for _, t := range []table{o.live, o.other} {
		if !t.exists() || o.unreadable() != "" {
			continue
		}
		v := o.values()
		v.Of, v.Partition = t.Name, t.Newest
		facts, err := read[Fact](ctx, db, o.render("adopt/facts", v))
		if err != nil {
			return s, err
		}
		s.Tables = append(s.Tables, TableStatus{o.Database + "." + t.Name,
			t.ours() && o.other.exists(), facts})
	}
	return s, nil
}
