package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// adoption is what a server shows of an Adoption.
type adoption struct {
	Schema
	db             *sql.DB
	databaseEngine string
	tables         map[string]facts // by suffix
	begun          bool             // there is another table
	newTable       bool             // the new table has the name
}

// facts are about a table, as in system.tables.
type facts struct {
	engine, full, create, key, comment, rows, policy string
	columns                                          map[string]string // by name: kind of default
}

// mark begins the comment on the new table, before and after the swap.
func (o *adoption) mark() string { return "(traceflake: the new table of " + o.named("") + ")" }

// systemTables is the table of tables, of all servers of a cluster.
func (o *adoption) systemTables() string {
	if o.Cluster == "" {
		return "system.tables"
	}
	return "clusterAllReplicas(" + quoteText(o.Cluster) + ", system.tables)"
}

func (o *adoption) has(suffix, column string) bool {
	_, ok := o.tables[suffix].columns[column]
	return ok
}

func (o *adoption) hasLookup() bool { return strings.HasSuffix(o.tables[lookup].engine, "MergeTree") }

// look reads what there is, and refuses what cannot be adopted.
func (a Adoption) look(ctx context.Context, db *sql.DB) (*adoption, error) {
	if a.Layout == Overlay || a.TTL != 0 || a.KeepLookup {
		return nil, errors.New("clickhouse: an adoption has a layout other than Overlay, keeps the lookup table, and carries over the TTL of the old table: leave these out")
	}
	o, err := a.read(ctx, db)
	if err != nil {
		return nil, err
	}
	return o, o.check(ctx)
}

func (a Adoption) read(ctx context.Context, db *sql.DB) (*adoption, error) {
	o := &adoption{Schema: Schema(a), db: db, tables: map[string]facts{}}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := execute(ctx, db, versionGuard()); err != nil {
		return nil, err
	}
	database, err := query(ctx, db, "SELECT name, engine FROM system.databases WHERE name = "+o.inDatabase())
	if err != nil {
		return nil, err
	}
	if len(database) == 0 {
		return nil, fmt.Errorf("clickhouse: there is no database %s", o.Database)
	}
	o.Database, o.databaseEngine = database[0][0], database[0][1]
	// In one query: between two of them another operator may exchange the tables.
	suffixes, names := map[string]string{}, []string{}
	for _, suffix := range []string{"", other, both, both + lookup, lookup} {
		suffixes[o.named(suffix)] = suffix
		names = append(names, quoteText(o.named(suffix)))
	}
	among := " IN (" + strings.Join(names, ", ") + ") AND database = " + o.inDatabase()
	rows, err := query(ctx, db, "SELECT name, engine, engine_full, create_table_query, sorting_key, comment, toString(ifNull(total_rows, 0)), storage_policy FROM system.tables WHERE name"+among)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		o.tables[suffixes[r[0]]] = facts{r[1], r[2], r[3], r[4], r[5], r[6], r[7], map[string]string{}}
	}
	if rows, err = query(ctx, db, "SELECT table, name, default_kind FROM system.columns WHERE table"+among); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if t, there := o.tables[suffixes[r[0]]]; there {
			t.columns[r[1]] = r[2]
		}
	}
	_, o.begun = o.tables[other]
	o.newTable = strings.HasPrefix(o.tables[""].comment, o.mark())
	return o, nil
}

func (o *adoption) noTable() error {
	return fmt.Errorf("clickhouse: there is no table %s in database %s: name the table of the Collector's exporter, or create one with create", o.named(""), o.Database)
}

// distributed is the beginning of a Distributed table's engine.
var distributed = regexp.MustCompile(`^Distributed\('[^']*', '([^']*)', '([^']*)'`)

// check refuses tables that cannot be exchanged, and tables in the way.
func (o *adoption) check(ctx context.Context) error {
	name, live, database := o.named(""), o.tables[""], o.databaseEngine
	otherNew := strings.HasPrefix(o.tables[other].comment, o.mark())
	m := distributed.FindStringSubmatch(live.full)
	switch {
	case live.engine == "":
		return o.noTable()
	case m != nil:
		return fmt.Errorf("clickhouse: %s only distributes to other tables: adopt the one that holds the rows, --database %s --table %s", name, m[1], m[2])
	case !slices.Contains([]string{"MergeTree", "ReplicatedMergeTree", "SharedMergeTree"}, live.engine):
		return fmt.Errorf("clickhouse: %s has the engine %s: only a MergeTree, replicated, shared or neither, can be adopted: others may merge spans into one", name, live.engine)
	case !slices.Contains([]string{"Atomic", "Replicated", "Shared"}, database):
		return fmt.Errorf("clickhouse: the database of %s has the engine %s, which cannot exchange tables: an Atomic one can", name, database)
	case o.begun && o.newTable == otherNew:
		return fmt.Errorf("clickhouse: there is a table %s, which does not belong to an adoption of %s: rename or drop it", o.named(other), name)
	}
	for _, suffix := range []string{both, both + lookup} {
		if t, there := o.tables[suffix]; there && (t.engine != "View" || !o.begun) {
			return fmt.Errorf("clickhouse: there is a table or view %s, which does not belong to an adoption of %s: rename or drop it", o.named(suffix), name)
		}
	}
	if o.Cluster == "" {
		rows, err := query(ctx, o.db, "SELECT toString(total_replicas) FROM system.replicas WHERE "+o.at("table", "")+" AND total_replicas > 1")
		if err == nil && len(rows) > 0 && database == "Atomic" {
			err = fmt.Errorf("clickhouse: %s has %s replicas: name their cluster with --cluster, so that all of them exchange it", name, rows[0][0])
		}
		return err
	}
	rows, err := query(ctx, o.db, fmt.Sprintf("SELECT toString(startsWith(comment, %s)), arrayStringConcat(groupArray(hostName()), ', ') FROM %s WHERE %s GROUP BY 1 ORDER BY 1",
		quoteText(o.mark()), o.systemTables(), o.at("name", "")))
	if err == nil && len(rows) > 1 {
		err = fmt.Errorf("clickhouse: %s is the old table on %s and the new one on %s: run EXCHANGE TABLES there by hand, without ON CLUSTER, until all agree", name, rows[0][1], rows[1][1])
	}
	return err
}

// readers returns the views that read a table and for which the condition holds.
func (o *adoption) readers(ctx context.Context, suffix, condition string) (names []string, err error) {
	pattern := "[^A-Za-z0-9_.-]`?" + o.Database + "`?\\.`?" + o.named(suffix) + "($|[^A-Za-z0-9_-])"
	rows, err := query(ctx, o.db, "SELECT database || '.' || name FROM system.tables WHERE match(as_select, "+quoteText(pattern)+") AND "+condition+" ORDER BY 1")
	for _, r := range rows {
		names = append(names, r[0])
	}
	return names, err
}
