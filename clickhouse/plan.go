package clickhouse

import (
	"context"
	"fmt"
	"strings"
)

// stage says how far a migration has come.
type stage int

const (
	settled stage = iota // there is nothing to migrate
	ahead                // it has not begun, or got no further than new, empty tables
	halfway              // the new table has the old one's name
)

// facts are what a plan needs to know of a table.
type facts struct {
	engine    string
	mine      bool // has the migration's mark
	isNew     bool // is of the new layout
	partition string
	rows      uint64
}

// plan says where the migration stands. It changes nothing and refuses what
// cannot be migrated, and tables under the working names that are not its own.
func (m migration) plan(ctx context.Context) (stage, error) {
	tables, err := m.look(ctx)
	if err != nil {
		return settled, fmt.Errorf("clickhouse: migrate: look at table %s and those beside it: %w", m.table(), err)
	}
	live, there := tables[""]
	begun := tables[copying].mine
	if !there && begun {
		return settled, fmt.Errorf("clickhouse: migrate: table %s is gone, and its migration had not ended: its spans are in %s and %s; rename that of them which is to be migrated",
			m.table(), m.table()+todo, m.table()+done)
	}
	if !begun && (!there || live.isNew) {
		return settled, nil
	}
	staged := begun && tables[staging+m.local()].mine // on a cluster the Distributed table goes with it
	for _, t := range []struct {
		suffix string
		mine   bool
	}{
		{copying, begun},
		{todo, begun && (live.isNew || tables[todo].isNew && tables[todo].rows == 0)},
		{staging, staged},
		{staging + m.local(), staged},
		{done, begun && live.isNew && tables[done].mine},
	} {
		if _, there := tables[t.suffix]; there && !t.mine {
			return settled, fmt.Errorf("clickhouse: migrate: table %s is there and not of this migration: "+
				"drop or rename it, or end the other server's migration that made it; nothing was changed", m.table()+t.suffix)
		}
	}
	if live.isNew {
		return halfway, m.exec(ctx, m.shapeGuards()...)
	}
	if err := m.canBeMigrated(ctx, live); err != nil || m.Cluster == "" {
		return ahead, err
	}
	if local, there := tables[m.local()]; there && local.partition != "toDate(Timestamp)" {
		return ahead, fmt.Errorf("clickhouse: migrate: table %s is partitioned by %q, not by toDate(Timestamp); nothing was changed",
			m.table()+m.local(), local.partition)
	}
	return ahead, m.exec(ctx, m.rowsGuard())
}

// look finds the table, under the suffix "", and those under the working names.
func (m migration) look(ctx context.Context) (map[string]facts, error) {
	isNew := "sorting_key = 'TraceId'"
	if m.Cluster != "" {
		isNew = m.isFront()
	}
	suffixes := map[string]string{}
	var names []string
	for _, suffix := range []string{"", m.local(), todo, copying, staging, staging + m.local(), done} {
		suffixes[m.table()+suffix] = suffix
		names = append(names, quoteText(m.table()+suffix))
	}
	rows, err := m.db.QueryContext(ctx, fmt.Sprintf("SELECT name, engine, comment = %s, %s, partition_key, ifNull(total_rows, 0) FROM system.tables WHERE database = %s AND name IN (%s)",
		quoteText(m.mark), isNew, m.database(), strings.Join(names, ", ")))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	tables := map[string]facts{}
	for rows.Next() {
		var name string
		var t facts
		if err := rows.Scan(&name, &t.engine, &t.mine, &t.isNew, &t.partition, &t.rows); err != nil {
			return nil, err
		}
		tables[suffixes[name]] = t
	}
	return tables, rows.Err()
}

// canBeMigrated refuses a table that cannot change places with another, whose
// partitions cannot be moved, or with other columns than the exporter's: what is
// in them would not come along.
func (m migration) canBeMigrated(ctx context.Context, live facts) error {
	var database string
	if err := m.db.QueryRowContext(ctx, "SELECT engine FROM system.databases WHERE name = "+m.database()).Scan(&database); err != nil {
		return fmt.Errorf("clickhouse: migrate: look at the database of %s: %w", m.table(), err)
	}
	if database != "Atomic" {
		return fmt.Errorf("clickhouse: migrate: the database of %s has the engine %s: only in an Atomic one can tables change places on one server; nothing was changed",
			m.table(), database)
	}
	if live.engine != "MergeTree" {
		return fmt.Errorf("clickhouse: migrate: table %s has the engine %s: only partitions of a MergeTree can be moved one by one; nothing was changed",
			m.table(), live.engine)
	}
	types, err := m.columnTypes(ctx)
	if err != nil {
		return fmt.Errorf("clickhouse: migrate: look at table %s: %w", m.table(), err)
	}
	for _, c := range exporterColumns {
		if types[c[0]] != c[1] {
			return fmt.Errorf("clickhouse: migrate: table %s is not the exporter's: column %s has type %q, not %q; nothing was changed",
				m.table(), c[0], types[c[0]], c[1])
		}
		delete(types, c[0])
	}
	for name := range types {
		return fmt.Errorf("clickhouse: migrate: table %s has the column %s, which the exporter's has not and the new table would lose; nothing was changed",
			m.table(), name)
	}
	return nil
}

// columnTypes are those of the columns that hold something.
func (m migration) columnTypes(ctx context.Context) (map[string]string, error) {
	rows, err := m.db.QueryContext(ctx, fmt.Sprintf(
		"SELECT name, type FROM system.columns WHERE database = %s AND table = %s AND default_kind NOT IN ('ALIAS', 'EPHEMERAL')",
		m.database(), quoteText(m.table())))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	types := map[string]string{}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return nil, err
		}
		types[name] = kind
	}
	return types, rows.Err()
}
