package clickhouse

import (
	"context"
	"database/sql"
	"time"
)

// Status is the state of an [Adoption], or of any table of spans.
type Status struct {
	Phase   Phase
	Problem error // why the table cannot be adopted, or the adoption cannot continue
	Tables  []TableStatus
}

// TableStatus is the state of a table.
type TableStatus struct {
	Table         string // with its database
	SortingKey    string
	New           bool // is the new one of an adoption that has not ended
	Engine        string
	TTL           string // "" keeps spans forever
	StoragePolicy string
	Rows, Bytes   uint64    // of a Distributed table Bytes is 0
	Future        uint64    // spans that begin in more than an hour, as of wrong clocks
	Ordered       float64   // share of the sampled IDs that have the time of their span
	Sampled       uint64    // spans of the newest partition, 100,000 at most
	Expires       time.Time // of the last span that is not in the future; zero without TTL
	Views         []string  // that read the table
}

// Status returns the state of the table and, during an adoption, of the other table.
func (a Adoption) Status(ctx context.Context, db *sql.DB) (s Status, err error) {
	o, err := a.read(ctx, db)
	if err != nil {
		return s, err
	}
	if !o.live.exists() && !o.other.exists() {
		return s, o.noTable()
	}
	s.Phase = o.phase
	if s.Problem = o.check(); s.Problem == nil {
		s.Problem = o.checkServers(ctx)
	}
	for _, t := range []table{o.live, o.other} {
		if !t.exists() {
			continue
		}
		of, err := o.statusOf(ctx, t)
		if err != nil {
			return s, err
		}
		of.New = t.ours() && o.other.exists()
		s.Tables = append(s.Tables, of)
	}
	return s, nil
}

func (o *adoption) statusOf(ctx context.Context, t table) (s TableStatus, err error) {
	s = TableStatus{Table: o.database + "." + t.Name, SortingKey: t.SortingKey, Engine: t.Engine,
		TTL:           clause(t.Full, "TTL"),
		StoragePolicy: t.Policy, Rows: t.Rows, Bytes: t.Bytes}
	if t.Expires > 0 && s.TTL != "" {
		s.Expires = time.Unix(t.Expires, 0)
	}
	newest := "_partition_id = " + quoteText(t.Newest)
	if !t.mergeTree() {
		newest = "1"
	}
	type counts struct {
		Rows    uint64 `json:",string"`
		Future  uint64 `json:",string"`
		Sampled uint64 `json:",string"`
		Ordered uint64 `json:",string"`
	}
	all, err := read[counts](ctx, o.db,
		o.render("counts", "{table}", o.full(t), "{newest}", newest))
	if err != nil {
		return s, err
	}
	of := all[0]
	s.Future, s.Sampled = of.Future, of.Sampled
	if !t.mergeTree() {
		s.Rows = of.Rows
	}
	if of.Sampled > 0 {
		s.Ordered = float64(of.Ordered) / float64(of.Sampled)
	}
	s.Views, err = o.readers(ctx, t, "", "")
	return s, err
}
