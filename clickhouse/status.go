package clickhouse

import (
	"context"
	"database/sql"
	"time"
)

// Status is the state of an [Adoption], or of any table of spans.
type Status struct {
	Phase    Phase
	Problem  error // what is wrong with the tables, and what to do
	Obstacle error // why the table cannot be adopted
	Tables   []TableStatus
	Next     string // what an operator can do next, as text and statements
}

// TableStatus is the state of a table.
type TableStatus struct {
	Table         string // with its database
	SortingKey    string
	New           bool // is the new one of an adoption that has not ended
	Engine        string
	TTL           string // "" keeps spans forever
	StoragePolicy string
	Bytes         uint64    // of a Distributed table 0
	Expires       time.Time // of the last span that is not in the future; zero without TTL
	Views         []string  // that read the table
	Counts
}

// Counts are numbers of spans.
type Counts struct {
	Rows    uint64  `json:",string"`
	Future  uint64  `json:",string"` // that begin in more than an hour, as of wrong clocks
	Sampled uint64  `json:",string"` // spans of the newest partition, 100,000 at most
	Ordered float64 // share of the sampled spans that start within an hour of their ID's time
}

// Status returns the state of the table and, during an adoption, of the other table.
func (a Adoption) Status(ctx context.Context, db *sql.DB) (s Status, err error) {
	o, err := a.observe(ctx, db, looking)
	if o == nil || !o.live.exists() {
		return s, err
	}
	s.Phase, s.Problem, s.Next = o.phase, err, o.next()
	if s.Phase == NotBegun {
		s.Obstacle = o.check(ctx, beginning)
	}
	for _, t := range []table{o.live, o.other} {
		if !t.exists() {
			continue
		}
		of, err := o.statusOf(ctx, t)
		if err != nil {
			return s, err
		}
		s.Tables = append(s.Tables, of)
	}
	return s, nil
}

func (o *adoption) statusOf(ctx context.Context, t table) (s TableStatus, err error) {
	newest := "1" // of a Distributed table
	if t.Newest != "" {
		newest = "_partition_id = " + quoteText(t.Newest)
	}
	counts, err := read[Counts](ctx, o.db,
		o.render("counts", "{table}", o.quoted(t.Name), "{newest}", newest))
	if err != nil {
		return s, err
	}
	s = TableStatus{Table: o.Database + "." + t.Name, SortingKey: t.SortingKey,
		New: t.ours() && o.other.exists(), Engine: t.Engine, TTL: t.ttl(),
		StoragePolicy: t.Policy, Bytes: t.Bytes, Counts: counts[0]}
	s.Rows = max(s.Rows, t.Rows) // a row policy may hide some
	if t.Expires > 0 && s.TTL != "" {
		s.Expires = time.Unix(t.Expires, 0)
	}
	views, err := read[table](ctx, o.db, o.render("readers", "{name}", quoteText(t.Name)))
	for _, view := range views {
		s.Views = append(s.Views, view.Name)
	}
	return s, err
}
