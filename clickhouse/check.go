package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// adoption is what a server shows of an Adoption.
type adoption struct {
	Schema
	server
	db       *sql.DB
	begun    bool // there is another table
	newTable bool // the new table, which has a layout of ours, has the name
}

// systemTables is the table of tables, of all servers of a cluster.
func (o *adoption) systemTables() string {
	if o.Cluster == "" {
		return "system.tables"
	}
	return "clusterAllReplicas(" + quoteText(o.Cluster) + ", system.tables)"
}

func (o *adoption) has(suffix, column string) bool { return o.tables[suffix].column(column).name != "" }

func (o *adoption) hasLookup() bool { return o.tables[lookup].mergeTree() }

// state reads what there is, and refuses what cannot be adopted.
func (a Adoption) state(ctx context.Context, db *sql.DB) (*adoption, error) {
	if a.Overlay || a.TTL != 0 {
		return nil, errors.New("clickhouse: an adoption replaces the exporter's table, and carries over its TTL: leave out Overlay and TTL")
	}
	o, err := a.read(ctx, db)
	if err != nil {
		return nil, err
	}
	return o, o.check(ctx)
}

func (a Adoption) read(ctx context.Context, db *sql.DB) (*adoption, error) {
	found, err := Schema(a).look(ctx, db, "", other, both, both+lookup, lookup)
	if err != nil {
		return nil, err
	}
	o := &adoption{Schema: Schema(a), server: found, db: db, begun: found.tables[other].exists(), newTable: found.tables[""].ours}
	o.Database = found.database
	return o, nil
}

func (o *adoption) noTable() error {
	return fmt.Errorf("clickhouse: there is no table %s in database %s: name the table of the Collector's exporter, or create one with create", o.named(""), o.Database)
}

// check refuses tables that cannot be exchanged, and tables in the way.
func (o *adoption) check(ctx context.Context) error {
	name, live, database := o.named(""), o.tables[""], o.databaseEngine
	m := distributed.FindStringSubmatch(live.full)
	switch {
	case !live.exists():
		return o.noTable()
	case m != nil:
		return fmt.Errorf("clickhouse: %s only distributes to other tables: adopt the one that holds the rows, --database %s --table %s", name, m[1], m[2])
	case !slices.Contains([]string{"MergeTree", "ReplicatedMergeTree", "SharedMergeTree"}, live.engine):
		return fmt.Errorf("clickhouse: %s has the engine %s: only a MergeTree, replicated, shared or neither, can be adopted: others may merge spans into one", name, live.engine)
	case !slices.Contains([]string{"Atomic", "Replicated", "Shared"}, database):
		return fmt.Errorf("clickhouse: the database of %s has the engine %s, which cannot exchange tables: an Atomic one can", name, database)
	case o.begun && o.newTable == o.tables[other].ours:
		return fmt.Errorf("clickhouse: there is a table %s, which does not belong to an adoption of %s: rename or drop it", o.named(other), name)
	}
	for _, suffix := range []string{both, both + lookup} {
		if t := o.tables[suffix]; t.exists() && (t.engine != "View" || !o.begun) {
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
	rows, err := query(ctx, o.db, fmt.Sprintf("SELECT toString(%s), arrayStringConcat(groupArray(hostName()), ', ') FROM %s WHERE %s GROUP BY 1 ORDER BY 1",
		ours, o.systemTables(), o.at("name", "")))
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
