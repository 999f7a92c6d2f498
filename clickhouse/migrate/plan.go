package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// Suffixes of the tables that a migration needs; see the package doc.
const (
	remaining = "_remaining"
	moving    = "_moving"
	copied    = "_copy"
	old       = "_old"
)

// reach is how far a migration has come.
type reach int

const (
	noTable   reach = iota // there is none
	notNeeded              // it has the new layout
	notBegun               // the old table has its name
	exchanged              // the new table has the old one's name
)

// facts are what a migration needs to know of a table.
type facts struct {
	engine    string
	mine      bool // has the migration's mark
	isNew     bool // is of the new layout
	partition string
	rows      uint64
}

// look returns the state of the migration and reads what the old table has besides
// the exporter's columns. It changes nothing, and refuses tables that cannot be
// migrated and foreign tables under the working names.
func (m *migration) look(ctx context.Context) (reach, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return notNeeded, fmt.Errorf("clickhouse: migrate: look at table %s and those beside it: %w", m.Named(""), err)
	}
	live, there := tables[""]
	begun := tables[moving].mine
	if !there && begun {
		return notNeeded, fmt.Errorf("clickhouse: migrate: table %s is gone, and its migration had not ended: "+
			"its spans are in %s and %s; rename the one to be migrated",
			m.Named(""), m.Named(remaining), m.Named(old))
	}
	switch {
	case !begun && !there:
		return noTable, nil
	case !begun && live.isNew:
		return notNeeded, nil
	}
	if err := m.checkNames(tables, begun); err != nil {
		return notNeeded, err
	}
	source := "" // of columns
	if live.isNew {
		source = moving
	}
	if err := m.learnColumns(ctx, source); err != nil {
		return notNeeded, err
	}
	if live.isNew {
		return exchanged, m.exec(ctx, m.ownGuards()...)
	}
	if err := m.canBeMigrated(ctx, live); err != nil {
		return notBegun, err
	}
	rows, there := tables[m.Rows()]
	switch {
	case m.KeepLookup:
		return notBegun, m.exec(ctx, m.LookupGuard())
	case m.Cluster == "":
		return notBegun, nil
	case there && rows.partition != ddl.PartitionKey:
		return notBegun, fmt.Errorf("clickhouse: migrate: table %s is partitioned by %q, not by %s; nothing was changed",
			m.Named(m.Rows()), rows.partition, ddl.PartitionKey)
	case there && len(m.extra) > 0:
		return notBegun, fmt.Errorf("clickhouse: migrate: table %s has the column %s, which %s may lack: "+
			"add it there and drop it here, or choose another name; nothing was changed",
			m.Named(""), m.extra[0].name, m.Named(m.Rows()))
	}
	return notBegun, m.exec(ctx, m.RowsGuard())
}

// ownGuards are the schema's guards without that of the lookup table, which is
// replaced at the end of the migration.
func (m *migration) ownGuards() []string {
	guards := m.Guards()
	return guards[:len(guards)-1]
}

// checkNames refuses tables under the working names that are not of this migration.
func (m *migration) checkNames(tables map[string]facts, begun bool) error {
	live := tables[""]
	copying := begun && tables[copied+m.Rows()].mine // on a cluster the Distributed table belongs to it
	for _, t := range []struct {
		suffix string
		mine   bool
	}{
		{moving, begun},
		{remaining, begun && (live.isNew || tables[remaining].isNew && tables[remaining].rows == 0)},
		{copied, copying},
		{copied + m.Rows(), copying},
		{old, begun && live.isNew && tables[old].mine},
	} {
		if _, there := tables[t.suffix]; there && !t.mine {
			return fmt.Errorf("clickhouse: migrate: table %s exists and does not belong to this migration: "+
				"drop or rename it, or end the other server's migration that made it; nothing was changed", m.Named(t.suffix))
		}
	}
	return nil
}

// tables finds the table, under the suffix "", and the working tables.
func (m *migration) tables(ctx context.Context) (map[string]facts, error) {
	isNew := m.IsShaped()
	if m.Cluster != "" {
		isNew = m.IsFront()
	}
	suffixes := map[string]string{}
	var names []string
	for _, suffix := range []string{"", m.Rows(), remaining, moving, copied, copied + m.Rows(), old} {
		suffixes[m.Named(suffix)] = suffix
		names = append(names, ddl.QuoteText(m.Named(suffix)))
	}
	rows, err := m.db.QueryContext(ctx, fmt.Sprintf("SELECT name, engine, %s, %s, partition_key, ifNull(total_rows, 0)\n"+
		"FROM system.tables WHERE database = %s AND name IN (%s)",
		m.isMine(), isNew, m.InDatabase(), strings.Join(names, ", ")))
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

// canBeMigrated refuses a table that cannot be exchanged with another, or whose
// partitions cannot be moved.
func (m *migration) canBeMigrated(ctx context.Context, live facts) error {
	var database string
	query := "SELECT engine FROM system.databases WHERE name = " + m.InDatabase()
	if err := m.db.QueryRowContext(ctx, query).Scan(&database); err != nil {
		return fmt.Errorf("clickhouse: migrate: look at the database of %s: %w", m.Named(""), err)
	}
	if database != "Atomic" {
		return fmt.Errorf("clickhouse: migrate: the database of %s has the engine %s: "+
			"tables on one server can be exchanged only in an Atomic one; nothing was changed", m.Named(""), database)
	}
	if live.engine != "MergeTree" {
		return fmt.Errorf("clickhouse: migrate: table %s has the engine %s: "+
			"only partitions of a MergeTree can be moved; nothing was changed", m.Named(""), live.engine)
	}
	return nil
}
