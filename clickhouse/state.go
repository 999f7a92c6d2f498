package clickhouse

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"
)

// adoption is an Adoption as observed on a server.
type adoption struct {
	Schema
	server
	db           *sql.DB
	skipAccess   bool
	phase        Phase
	live         table  // that the Collector writes to
	other        table  // alongside it: the new one before the swap, the old one after it
	renamed      string // what an interrupted finish or cancel renamed it to, or ""
	lookup       table  // of both
	history      table  // the view of both
	historyTimes table  // the view of both for the lookup table
	copies       []table
}

// The ends of the names of an adoption's tables and views, after that of the table.
const (
	otherEnd        = "_other"
	historyEnd      = "_all"
	historyTimesEnd = "_all_trace_id_ts"

	// These names also end in a random text.
	droppedEnd = "_dropped_" // to be dropped; then its UUID
	copyEnd    = "_copy_"    // the copy of a partition; then the partition
	copiedEnd  = "_copied_"  // the partition that was copied; then the partition
)

// ownComment is the comment of the views of an adoption, and of the tables of a copy, by which they
// are recognised: others may have such names, too.
const ownComment = "of an adoption by traceflake"

// temporary matches the end of the name of a table to be dropped, or of a copy.
var temporary = regexp.MustCompile(
	"^_(?:dropped_[0-9a-f]{32}|(?:copy|copied)_[0-9]{8})_[a-z2-7]{8}$")

// read returns the adoption as observed on the server.
func (a Adoption) read(ctx context.Context, db *sql.DB) (*adoption, error) {
	s := Schema{Database: a.Database, Table: a.Table, Cluster: a.Cluster, local: true}
	found, err := s.look(ctx, db)
	if err != nil {
		return nil, err
	}
	s.Database, s.Version = found.database, found.version
	n := s.named()
	o := &adoption{Schema: s, server: found, db: db, skipAccess: a.SkipAccess,
		live: found.table(n.spans), other: found.table(n.spans + otherEnd),
		lookup: found.table(n.times), history: found.table(n.spans + historyEnd),
		historyTimes: found.table(n.spans + historyTimesEnd)}
	for _, t := range o.tables {
		end := strings.TrimPrefix(t.Name, n.spans)
		switch {
		case !temporary.MatchString(end):
		case !strings.HasPrefix(end, droppedEnd):
			if t.Comment == ownComment {
				o.copies = append(o.copies, t)
			}
		case !o.other.exists():
			o.renamed = t.Name
			t.Name = o.other.Name
			o.other = t
		}
	}
	o.phase = o.reached()
	return o, nil
}

func (o *adoption) reached() Phase {
	complete := o.history.exists() && o.historyTimes.exists() && o.filled(o.server)
	begun := o.other.exists() || o.history.exists() || o.historyTimes.exists()
	switch {
	case !o.live.ours() && o.other.exists() && complete:
		return Prepared
	case !o.live.ours() && begun:
		return Preparing
	case !o.live.ours():
		return NotBegun
	case o.other.exists():
		return Swapped
	case begun:
		return Finishing
	}
	return Finished
}

// Phase returns the progress of the adoption.
func (a Adoption) Phase(ctx context.Context, db *sql.DB) (Phase, error) {
	o, err := a.read(ctx, db)
	if err != nil {
		return NotBegun, err
	}
	return o.phase, nil
}

// state returns the adoption as observed on the server, and an error if the table cannot be
// adopted.
func (a Adoption) state(ctx context.Context, db *sql.DB) (*adoption, error) {
	o, err := a.read(ctx, db)
	if err != nil {
		return nil, err
	}
	if err = o.check(); err == nil {
		err = o.checkServers(ctx)
	}
	return o, err
}

// early returns the error of a command that was run too early.
func (o *adoption) early(command string) error {
	return errorf("cannot %s: the adoption of %s is %s; next: %s", command,
		o.live.Name, o.phase, o.phase.Next())
}

func (o *adoption) noTable() error {
	return errorf("there is no table %s in database %s: name the table of the "+
		"Collector's exporter, or create one with create", o.live.Name, o.Database)
}

// check returns an error for tables that cannot be exchanged, and for other objects with their
// names.
func (o *adoption) check() error {
	name, engine := o.live.Name, o.live.Engine
	database, of := o.live.distributes()
	foreign := func(t table) error {
		return errorf("there is a table or view %s, which does not belong to an "+
			"adoption of %s: rename or drop it", t.Name, name)
	}
	switch {
	case !o.live.exists():
		return o.noTable()
	case of != "":
		return errorf("%s only distributes to other tables: adopt the one that "+
			"holds the rows, --database %s --table %s", name, database, of)
	case !slices.Contains([]string{"MergeTree", "ReplicatedMergeTree", "SharedMergeTree"}, engine):
		return errorf("%s has the engine %s: only a MergeTree, replicated, shared "+
			"or neither, can be adopted: others may merge spans into one", name, engine)
	case !slices.Contains([]string{"Atomic", "Replicated", "Shared"}, o.databaseEngine):
		return errorf("the database of %s has the engine %s, which cannot "+
			"exchange tables: an Atomic one can", name, o.databaseEngine)
	case o.other.exists() && (o.live.ours() == o.other.ours() || o.other.Engine != engine):
		return foreign(o.other)
	}
	for _, t := range []table{o.history, o.historyTimes} {
		if t.exists() && (t.Engine != "View" || t.Comment != ownComment) {
			return foreign(t)
		}
	}
	return nil
}

// checkServers returns an error if tables would be exchanged on some servers only.
func (o *adoption) checkServers(ctx context.Context) error {
	if o.Cluster == "" {
		all, err := read[struct{ Total int }](ctx, o.db, o.render("replicas"))
		if err == nil && all[0].Total > 1 && o.databaseEngine == "Atomic" {
			err = errorf("%s has %d replicas: name their cluster with --cluster, "+
				"so that all of them exchange it", o.live.Name, all[0].Total)
		}
		return err
	}
	sides, err := read[struct{ Hosts string }](ctx, o.db, o.render("sides"))
	if err == nil && len(sides) > 1 {
		err = errorf("%s is the old table on %s and the new one on %s: run "+
			"EXCHANGE TABLES there by hand, without ON CLUSTER, until all agree", o.live.Name,
			sides[0].Hosts, sides[1].Hosts)
	}
	return err
}

// render returns a template of an adoption, filled in; see [Schema.render].
func (o *adoption) render(name string, more ...string) string {
	return o.Schema.render("adopt/"+name, slices.Concat(more,
		o.place("live", o.live.Name), o.place("other", o.other.Name),
		o.place("history", o.history.Name), o.place("history_times", o.historyTimes.Name),
		[]string{"{comment}", quoteText(ownComment)})...)
}

// readers returns the names of the views that read a table, as far as a condition holds.
func (o *adoption) readers(ctx context.Context, t table, which string) (names []string, err error) {
	views, err := read[table](ctx, o.db, o.render("readers", "{name}", quoteText(t.Name),
		"{which}", which))
	for _, view := range views {
		names = append(names, view.Name)
	}
	return names, err
}
