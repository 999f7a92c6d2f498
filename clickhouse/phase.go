package clickhouse

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Phase is the progress of an [Adoption].
type Phase int

// The phases of an adoption, in their order.
const (
	NotBegun  Phase = iota // the old table alone
	Preparing              // the new table or a view is missing: prepare or cancel was interrupted
	Prepared               // the old table has the name, and the new one is alongside
	Swapped                // the new table has the name, and the old one is alongside
	Finishing              // the old table is dropped, but not the views: finish was interrupted
	Finished               // the new table alone
)

var phases = [...]struct{ is, next string }{
	NotBegun:  {"not begun", "`adopt prepare`"},
	Preparing: {"not completely prepared", "`adopt prepare`, or `adopt cancel`"},
	Prepared:  {"prepared", "`adopt swap`, or `adopt cancel`"},
	Swapped: {"swapped", "`adopt finish` once the old table has expired; `adopt copy` moves its " +
		"spans; `adopt undo` goes back"},
	Finishing: {"almost finished", "`adopt finish`"},
	Finished:  {"finished", "nothing"},
}

func (p Phase) String() string { return phases[p].is }

// Next returns the operator's next step, as text.
func (p Phase) Next() string { return phases[p].next }

// besides holds the names that an adoption gives to tables and views; see Adoption. The last three
// are prefixes for tables that only an adoption uses. A random suffix makes each name unique.
type besides struct {
	other, history, historyTimes string

	dropped string // to be dropped; then its UUID
	copying string // the copy of a partition; then the partition
	copied  string // the partition that was copied; then the partition
}

// adoption is an Adoption as observed on a server.
type adoption struct {
	Schema
	server
	db           *sql.DB
	skipAccess   bool
	name         besides
	phase        Phase
	live         table // that the Collector writes to
	other        table // alongside it: the new one before the swap, the old one after it
	lookup       table // of both
	feed         table // the materialized view that fills it
	history      table // the view of both
	historyTimes table // the view of both for the lookup table
	copies       []table
}

// viewComment is the comment of the views of an adoption, by which they are recognised.
const viewComment = "of an adoption by traceflake"

// read returns the adoption as observed on the server.
func (a Adoption) read(ctx context.Context, db *sql.DB) (*adoption, error) {
	s := Schema{Database: a.Database, Table: a.Table, Cluster: a.Cluster, Overlay: true}
	n := s.named()
	name := besides{n.spans + "_other", n.spans + "_all", n.spans + "_all_trace_id_ts",
		n.spans + "_dropped_", n.spans + "_copy_", n.spans + "_copied_"}
	found, err := s.look(ctx, db,
		[]string{n.spans, n.times, n.feed, name.other, name.history, name.historyTimes},
		[]string{name.dropped, name.copying, name.copied})
	if err != nil {
		return nil, err
	}
	s.Database = found.database
	o := &adoption{Schema: s, server: found, db: db, skipAccess: a.SkipAccess, name: name,
		live: found.table(n.spans), other: found.table(name.other),
		lookup: found.table(n.times), feed: found.table(n.feed),
		history: found.table(name.history), historyTimes: found.table(name.historyTimes)}
	for _, t := range o.tables {
		switch {
		case strings.HasPrefix(t.Name, name.dropped) && !o.other.exists():
			o.other = t
		case strings.HasPrefix(t.Name, name.copying) || strings.HasPrefix(t.Name, name.copied):
			o.copies = append(o.copies, t)
		}
	}
	o.phase = o.reached()
	return o, nil
}

func (o *adoption) reached() Phase {
	complete := o.history.exists() && o.historyTimes.exists() && o.lookup.exists() &&
		o.feed.exists()
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
	return fmt.Errorf("clickhouse: cannot %s: the adoption of %s is %s; next: %s", command,
		o.live.Name, o.phase, o.phase.Next())
}

func (o *adoption) noTable() error {
	return fmt.Errorf("clickhouse: there is no table %s in database %s: name the table of the "+
		"Collector's exporter, or create one with create", o.live.Name, o.database)
}

// check returns an error for tables that cannot be exchanged, and for other objects with their
// names.
func (o *adoption) check() error {
	name, engine := o.live.Name, o.live.Engine
	m := distributed.FindStringSubmatch(o.live.Full)
	switch {
	case !o.live.exists():
		return o.noTable()
	case m != nil:
		return fmt.Errorf("clickhouse: %s only distributes to other tables: adopt the one that "+
			"holds the rows, --database %s --table %s", name, m[1], m[2])
	case !slices.Contains([]string{"MergeTree", "ReplicatedMergeTree", "SharedMergeTree"}, engine):
		return fmt.Errorf("clickhouse: %s has the engine %s: only a MergeTree, replicated, shared "+
			"or neither, can be adopted: others may merge spans into one", name, engine)
	case !slices.Contains([]string{"Atomic", "Replicated", "Shared"}, o.databaseEngine):
		return fmt.Errorf("clickhouse: the database of %s has the engine %s, which cannot "+
			"exchange tables: an Atomic one can", name, o.databaseEngine)
	case o.other.exists() && o.live.ours() == o.other.ours():
		return o.foreign(o.other)
	}
	for _, t := range []table{o.history, o.historyTimes} {
		if t.exists() && (t.Engine != "View" || t.Comment != viewComment) {
			return o.foreign(t)
		}
	}
	return nil
}

// checkServers returns an error if tables would be exchanged on some servers only.
func (o *adoption) checkServers(ctx context.Context) error {
	name := o.live.Name
	if o.Cluster == "" {
		type replicas struct{ Total int }
		all, err := read[replicas](ctx, o.db, "SELECT max(total_replicas) AS total FROM "+
			"system.replicas WHERE "+o.at("table", name))
		if err == nil && all[0].Total > 1 && o.databaseEngine == "Atomic" {
			err = fmt.Errorf("clickhouse: %s has %d replicas: name their cluster with --cluster, "+
				"so that all of them exchange it", name, all[0].Total)
		}
		return err
	}
	type side struct{ Hosts string }
	sides, err := read[side](ctx, o.db, "SELECT arrayStringConcat(groupArray(hostName()), ', ') "+
		"AS hosts\nFROM "+
		o.everywhere("clusterAllReplicas", "system.tables")+" WHERE "+o.isNamed(name)+
		"\nGROUP BY sorting_key = "+quoteText(sortingKey)+" AS ours ORDER BY ours")
	if err == nil && len(sides) > 1 {
		err = fmt.Errorf("clickhouse: %s is the old table on %s and the new one on %s: run "+
			"EXCHANGE TABLES there by hand, without ON CLUSTER, until all agree", name,
			sides[0].Hosts, sides[1].Hosts)
	}
	return err
}

func (o *adoption) foreign(t table) error {
	return fmt.Errorf("clickhouse: there is a table or view %s, which does not belong to an "+
		"adoption of %s: rename or drop it", t.Name, o.live.Name)
}

// render returns a template of an adoption, filled in; see [Schema.render].
func (o *adoption) render(name string, more ...string) string {
	return o.Schema.render("adopt/"+name, append([]string{
		"{database}", quoteText(o.database),
		"{live}", o.full(o.live), "{live_name}", quoteText(o.live.Name),
		"{other}", o.quoted(o.name.other), "{other_name}", quoteText(o.name.other),
		"{history}", o.full(o.history), "{history_times}", o.full(o.historyTimes),
		"{comment}", quoteText(viewComment),
	}, more...)...)
}

// full returns the quoted name of a table, with its database.
func (o *adoption) full(t table) string { return o.quoteFull(t.Name) }

func (o *adoption) quoteFull(name string) string {
	return quoteName(o.database) + "." + quoteName(name)
}

// readers returns the names of the views that read a table, except one view; engine restricts them
// unless it is "".
func (o *adoption) readers(
	ctx context.Context, t table, but, engine string,
) (names []string, err error) {
	pattern := "[^A-Za-z0-9_.-]`?" + o.database + "`?\\.`?" + t.Name + "($|[^A-Za-z0-9_-])"
	views, err := read[table](ctx, o.db, o.render("readers", "{pattern}", quoteText(pattern)))
	for _, v := range views {
		if v.Name != o.database+"."+but && (engine == "" || v.Engine == engine) {
			names = append(names, v.Name)
		}
	}
	return names, err
}

// restored returns the steps that give the other table its name back, if an interrupted finish or
// cancel renamed it.
func (o *adoption) restored() []Step {
	name := o.name.other
	if !o.other.exists() || o.other.Name == name {
		return nil
	}
	return []Step{{
		Does: "the table " + o.other.Name + " has its name " + name + " again",
		SQL:  []string{o.rename(o.other.Name, name)},
	}}
}

func (o *adoption) rename(from, to string) string {
	return "RENAME TABLE IF EXISTS " + o.quoteFull(from) + " TO " + o.quoteFull(to) + o.onCluster()
}

// dropping returns the step that drops the other table. Its name may be given to another table at
// any time, so it is first renamed to a name that no other table can get, and then checked.
func (o *adoption) dropping(ctx context.Context, does string, holds holding) (Step, error) {
	uuids := []string{o.other.UUID}
	if o.Cluster != "" { // each server may have a UUID of its own
		all, err := read[struct{ UUID string }](ctx, o.db, "SELECT DISTINCT toString(uuid) AS "+
			"uuid FROM "+
			o.everywhere("clusterAllReplicas", "system.tables")+" WHERE "+o.isNamed(o.other.Name)+
			" AND sorting_key = "+quoteText(o.other.SortingKey)+" ORDER BY uuid")
		if err != nil {
			return Step{}, err
		}
		for _, of := range all {
			uuids = append(uuids, of.UUID)
		}
	}
	name := o.name.dropped + strings.ReplaceAll(o.other.UUID, "-", "") + "_" + token()
	back := o.rename(name, o.name.other)
	return Step{
		Does:    does,
		SQL:     []string{o.rename(o.other.Name, name), o.still(name, uuids, holds), o.drop(name)},
		Undo:    []string{"UNDROP TABLE " + o.quoteFull(name) + o.onCluster(), back},
		restore: []string{back},
	}, nil
}

// The content that a table may have when it is dropped.
type holding string

const (
	nothing   holding = "IN"
	something holding = "NOT IN"
	anything  holding = "= '' AND name IN" // never true
)

// still returns the query that fails if the table with a name is not one of those to be dropped, or
// has other content.
func (o *adoption) still(name string, uuids []string, holds holding) string {
	return o.render("same", "{name}", quoteText(name), "{uuids}", texts(uuids),
		"{wrong}", string(holds),
		"{tables}", o.everywhere("clusterAllReplicas", "system.tables"),
		"{parts}", o.everywhere("clusterAllReplicas", "system.parts"))
}

// drop returns the statement that drops a table of any size.
func (o *adoption) drop(name string) string {
	return "DROP TABLE IF EXISTS " + o.quoteFull(name) + o.onCluster() +
		" SETTINGS max_table_size_to_drop = 0"
}

// isNamed returns the condition for rows of system.tables about the table with a name.
func (o *adoption) isNamed(name string) string {
	return "database = " + quoteText(o.database) + " AND name = " + quoteText(name)
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// token returns a random text for a new name.
func token() string { return strings.ToLower(rand.Text()[:8]) }
