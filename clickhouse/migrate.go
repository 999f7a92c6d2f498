package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Progress is what [Schema.Migrate] has done.
type Progress struct {
	Partition   string // just moved, by its ID
	Rows        uint64 // in it
	Moved, Left uint64 // rows in all
}

// Suffixes of the tables that a migration needs.
const (
	todo    = "_before"  // what the old table still holds
	copying = "_copying" // the one partition at hand
	staging = "_staging" // its copy in the new layout
	done    = "_old"     // what has been moved, kept
)

// Migrate turns an existing table into the one of the schema, under the same
// name and with all of its spans: the exporter's table or an Owned one of one
// server into an Owned one, or either into one on a cluster. progress may be nil.
//
// First the new table takes the old one's name, in one step, so that new spans
// go into it; the exporter needs no restart. The old spans follow partition by
// partition; until they have, queries do not see them. A copy counts only when its
// rows and their checksum are those of the original. The old rows stay in the table with the suffix
// _old: drop it, or partitions of it, when you are satisfied. The exporter's lookup view
// and table are dropped; set create_schema: false in the exporter before.
//
// After an error or an interruption run it again: it goes on where it stopped,
// from any point, and moves no span twice. Run one migration of a table at a
// time; on a cluster run it on each server that holds an old table, one by one.
func (s Schema) Migrate(ctx context.Context, db *sql.DB, progress func(Progress)) error {
	if err := s.validate(); err != nil {
		return err
	}
	if s.Layout != Owned {
		return errors.New("clickhouse: migrate: the layout Overlay is the exporter's table as it is; there is nothing to migrate")
	}
	m := migration{s, db}
	there, err := m.isThere(ctx, "")
	if err != nil {
		return err
	}
	if !there { // a fresh start
		return s.Create(ctx, db)
	}
	if err := m.exchange(ctx); err != nil {
		return err
	}
	if there, err = m.isThere(ctx, todo); err != nil || !there {
		return err // nothing was there to migrate, or all of it is done
	}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	for {
		p, more, err := m.step(ctx)
		if err != nil {
			return err
		}
		if p.Partition != "" && progress != nil {
			progress(p)
		}
		if !more {
			return m.finish(ctx)
		}
	}
}

type migration struct {
	Schema
	db *sql.DB
}

func (m migration) isThere(ctx context.Context, suffix string) (bool, error) {
	n, err := m.number(ctx, fmt.Sprintf("SELECT count() FROM system.tables WHERE database = %s AND name = %s",
		m.database(), quoteText(m.table()+suffix)))
	return n > 0, err
}

func (m migration) number(ctx context.Context, query string) (n uint64, err error) {
	if err := m.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("clickhouse: migrate: %s: %w", query, err)
	}
	return n, nil
}

// exchange gives the new table the old one's name, if it has not got it yet.
func (m migration) exchange(ctx context.Context) error {
	var key string
	err := m.db.QueryRowContext(ctx, fmt.Sprintf("SELECT sorting_key FROM system.tables WHERE database = %s AND name = %s",
		m.database(), quoteText(m.table()))).Scan(&key)
	if err != nil {
		return fmt.Errorf("clickhouse: migrate: look at table %s: %w", m.table(), err)
	}
	target := m.Cluster == "" && key == "TraceId" || m.Cluster != "" && key == "" // a Distributed table has none
	statements := append([]string{m.versionGuard()}, functionStatements(m.Cluster)...)
	if target {
		return m.run(ctx, m.db, append(statements, m.shapeGuard()))
	}
	if there, err := m.isThere(ctx, done); err != nil {
		return err
	} else if there {
		return fmt.Errorf("clickhouse: migrate: table %s is there from an earlier migration: drop or rename it first", m.table()+done)
	}
	if err := m.sourceHasNoMore(ctx); err != nil {
		return err
	}
	if m.Cluster == "" {
		statements = append(statements, m.createTables(todo, "", m.TTL)...)
	} else {
		statements = append(statements, m.createTables(m.local(), "", m.TTL)...)
		statements = append(statements, m.createFront(m.local(), todo, ""))
	}
	return m.run(ctx, m.db, append(statements,
		"DROP VIEW IF EXISTS "+m.name("_trace_id_ts_mv")+" SYNC",
		"EXCHANGE TABLES "+m.name("")+" AND "+m.name(todo),
		m.shapeGuard()))
}

// sourceHasNoMore refuses a table with other columns than the exporter's: what
// is in them would not come along.
func (m migration) sourceHasNoMore(ctx context.Context) error {
	rows, err := m.db.QueryContext(ctx, fmt.Sprintf(
		"SELECT name, type FROM system.columns WHERE database = %s AND table = %s AND default_kind NOT IN ('ALIAS', 'EPHEMERAL')",
		m.database(), quoteText(m.table())))
	if err != nil {
		return fmt.Errorf("clickhouse: migrate: look at table %s: %w", m.table(), err)
	}
	defer func() { _ = rows.Close() }()
	types := map[string]string{}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return fmt.Errorf("clickhouse: migrate: look at table %s: %w", m.table(), err)
		}
		types[name] = kind
	}
	if err := rows.Err(); err != nil {
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

// prepare makes the tables that the partitions go through.
func (m migration) prepare(ctx context.Context) error {
	statements := []string{
		"CREATE TABLE IF NOT EXISTS " + m.name(copying) + " AS " + m.name(todo),
		"CREATE TABLE IF NOT EXISTS " + m.name(done) + " AS " + m.name(todo),
	}
	// No TTL: rows must not vanish between a copy and its count.
	statements = append(statements, m.createTables(staging+m.local(), staging, 0)...)
	for _, statement := range statements {
		if err := exec(ctx, m.db, statement); err != nil {
			return err
		}
	}
	ttl, err := m.number(ctx, fmt.Sprintf("SELECT countIf(match(engine_full, ' TTL ')) FROM system.tables WHERE database = %s AND name = %s",
		m.database(), quoteText(m.table()+copying)))
	if err != nil || ttl == 0 {
		return err
	}
	return exec(ctx, m.db, "ALTER TABLE "+m.name(copying)+" REMOVE TTL")
}

// step does what the tables' state says is next. Each state has one meaning:
//
//	copying has rows                    its copy is missing or in doubt: make it
//	copying is empty, staging has rows  the copy is whole and kept: move it
//	both are empty                      take the next partition
func (m migration) step(ctx context.Context) (p Progress, more bool, err error) {
	copied, err := m.state(ctx, copying)
	if err != nil {
		return p, false, err
	}
	if copied.rows == 0 {
		staged, err := m.state(ctx, staging)
		if err != nil {
			return p, false, err
		}
		if staged.rows > 0 {
			return m.move(ctx, staged)
		}
		partition, err := m.next(ctx)
		if err != nil || partition == "" {
			return p, false, err
		}
		return p, true, exec(ctx, m.db, movePartition(m.name(todo), "", partition, m.name(copying)))
	}
	if err := m.copy(ctx, copied); err != nil {
		return p, false, err
	}
	return p, true, exec(ctx, m.db, movePartition(m.name(copying), "", copied.partition, m.name(done)))
}

// contents tell whether two tables hold the same spans.
type contents struct {
	rows, checksum uint64
	partition      string
}

func (m migration) state(ctx context.Context, suffix string) (c contents, err error) {
	query := "SELECT count(), groupBitXor(cityHash64(Timestamp, TraceId, SpanId, Duration)), any(_partition_id) FROM " + m.name(suffix)
	if err := m.db.QueryRowContext(ctx, query).Scan(&c.rows, &c.checksum, &c.partition); err != nil {
		return c, fmt.Errorf("clickhouse: migrate: count the rows of %s: %w", m.table()+suffix, err)
	}
	return c, nil
}

// next is a partition that is still to be moved, the newest first, or "".
func (m migration) next(ctx context.Context) (partition string, err error) {
	query := "SELECT max(_partition_id) FROM " + m.name(todo)
	if err := m.db.QueryRowContext(ctx, query).Scan(&partition); err != nil {
		return "", fmt.Errorf("clickhouse: migrate: look for the next partition of %s: %w", m.table()+todo, err)
	}
	return partition, nil
}

// copy fills staging with what copying holds, and proves it.
func (m migration) copy(ctx context.Context, original contents) error {
	for _, statement := range []string{
		"TRUNCATE TABLE " + m.name(staging+m.local()) + onCluster(m.Cluster),
		// Copied a second time, blocks must not pass for repetitions.
		"INSERT INTO " + m.name(staging) + " (" + columnNames() + ")\nSELECT " + columnNames() + " FROM " + m.name(copying) +
			" SETTINGS insert_deduplicate = 0" + m.foreground(),
	} {
		if err := exec(ctx, m.db, statement); err != nil {
			return err
		}
	}
	staged, err := m.state(ctx, staging)
	if err != nil {
		return err
	}
	if staged.rows != original.rows || staged.checksum != original.checksum {
		return fmt.Errorf("clickhouse: migrate: partition %s has %d rows and its copy %d, or they differ; nothing was lost, run it again",
			original.partition, original.rows, staged.rows)
	}
	return nil
}

func (m migration) foreground() string {
	if m.Cluster == "" {
		return ""
	}
	return ", distributed_foreground_insert = 1"
}

// move puts the copy into the table.
func (m migration) move(ctx context.Context, staged contents) (p Progress, more bool, err error) {
	statement := movePartition(m.name(staging+m.local()), onCluster(m.Cluster), staged.partition, m.name(m.local()))
	if err := exec(ctx, m.db, statement); err != nil {
		return p, false, err
	}
	p = Progress{Partition: staged.partition, Rows: staged.rows}
	if p.Moved, err = m.number(ctx, "SELECT count() FROM "+m.name(done)); err != nil {
		return p, false, err
	}
	p.Left, err = m.number(ctx, "SELECT count() FROM "+m.name(todo))
	return p, true, err
}

func movePartition(from, on, partition, to string) string {
	return "ALTER TABLE " + from + on + " MOVE PARTITION ID " + quoteText(partition) + " TO TABLE " + to
}

// finish drops what is empty and no longer needed.
func (m migration) finish(ctx context.Context) error {
	for _, suffix := range []string{todo, copying, staging} {
		left, err := m.number(ctx, "SELECT count() FROM "+m.name(suffix))
		if err != nil {
			return err
		}
		if left > 0 {
			return fmt.Errorf("clickhouse: migrate: %d rows came into %s meanwhile: run it again", left, m.table()+suffix)
		}
	}
	// The table that tells that a migration is under way goes last.
	statements := []string{"DROP TABLE IF EXISTS " + m.name("_trace_id_ts") + " SYNC"}
	if m.Cluster != "" {
		statements = append(statements, "DROP TABLE IF EXISTS "+m.name(staging+m.local())+onCluster(m.Cluster)+" SYNC")
	}
	statements = append(statements,
		"DROP TABLE IF EXISTS "+m.name(staging)+onCluster(m.Cluster)+" SYNC",
		"DROP TABLE IF EXISTS "+m.name(copying)+" SYNC",
		"DROP TABLE IF EXISTS "+m.name(todo)+" SYNC")
	for _, statement := range statements {
		if err := exec(ctx, m.db, statement); err != nil {
			return err
		}
	}
	return nil
}
