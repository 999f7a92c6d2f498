package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
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
	copying = "_copying" // the one partition at hand; made first and dropped last, it tells that a migration is under way
	staging = "_staging" // its copy in the new layout
	done    = "_old"     // what has been moved, kept
)

// Migrate turns an existing table into the one of the schema, under the same
// name and with all of its spans: the exporter's table or an Owned one of one
// server into an Owned one, or either into one on a cluster. progress may be nil.
//
// First the new table takes the old one's name, in one step, so that new spans
// go into it; the exporter needs no restart. Migrate waits for statements that
// still use the old table. Then the old spans follow partition by partition;
// until they have, queries do not see them. A copy counts only when the rows and
// the checksum of all columns are those of the original. The old rows stay in the
// table with the suffix _old: drop it, or partitions of it, when you are satisfied.
// The exporter's lookup view and table are dropped at the end; set
// create_schema: false in the exporter before.
//
// A table that cannot be migrated, and one in the way that is not of this
// migration, are refused before anything is changed. After an error or an
// interruption run it again: it goes on where it stopped, from any point, and
// moves no span twice. Run one migration of a table at a time; on a cluster run
// it on each server that holds an old table, one by one.
func (s Schema) Migrate(ctx context.Context, db *sql.DB, progress func(Progress)) error {
	if err := s.validate(); err != nil {
		return err
	}
	if s.Layout != Owned {
		return errors.New("clickhouse: migrate: the layout Overlay is the exporter's table as it is; there is nothing to migrate")
	}
	if err := s.checkServer(ctx, db); err != nil {
		return err
	}
	m, err := newMigration(ctx, s, db)
	if err != nil {
		return err
	}
	stage, err := m.plan(ctx)
	if err != nil {
		return err
	}
	if stage == settled {
		return s.Create(ctx, db)
	}
	if stage == ahead {
		if err := m.exchange(ctx); err != nil {
			return err
		}
	}
	left, err := m.prepare(ctx)
	for err == nil && left {
		var p Progress
		if p, left, err = m.step(ctx); p.Partition != "" && progress != nil {
			progress(p)
		}
	}
	if err != nil {
		return err
	}
	return m.finish(ctx)
}

type migration struct {
	Schema
	db   *sql.DB
	mark string // the comment on its tables
}

func newMigration(ctx context.Context, s Schema, db *sql.DB) (migration, error) {
	m := migration{s, db, "traceflake: migration of " + s.table()}
	if s.Cluster == "" {
		return m, nil
	}
	// The copy is on all servers, and each server's migration has its own.
	var server string
	if err := db.QueryRowContext(ctx, "SELECT toString(serverUUID())").Scan(&server); err != nil {
		return m, fmt.Errorf("clickhouse: migrate: ask for the server's ID: %w", err)
	}
	m.mark += " of server " + server
	return m, nil
}

func (m migration) exec(ctx context.Context, statements ...string) error {
	return execAll(ctx, m.db, statements)
}

func (m migration) number(ctx context.Context, query string) (n uint64, err error) {
	if err := m.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return 0, fmt.Errorf("clickhouse: migrate: %s: %w", query, err)
	}
	return n, nil
}

func (m migration) isThere(ctx context.Context, suffix string) (bool, error) {
	n, err := m.number(ctx, fmt.Sprintf("SELECT count() FROM system.tables WHERE database = %s AND name = %s",
		m.database(), quoteText(m.table()+suffix)))
	return n > 0, err
}

// like makes a table of the old layout.
func (m migration) like(suffix, original string) string {
	return "CREATE TABLE IF NOT EXISTS " + m.name(suffix) + " AS " + m.name(original) + " COMMENT " + quoteText(m.mark)
}

// exchange gives the new table the old one's name.
func (m migration) exchange(ctx context.Context) error {
	statements := append(functionStatements(m.Cluster), m.like(copying, ""))
	if m.Cluster == "" {
		statements = append(statements, m.createTables(todo, "", m.TTL, "")...)
	} else {
		statements = append(statements, m.createTables(m.local(), "", m.TTL, "")[0], m.createFront(m.local(), todo, ""))
	}
	return m.exec(ctx, append(statements, "EXCHANGE TABLES "+m.name("")+" AND "+m.name(todo))...)
}

// prepare makes the tables that the partitions go through. left is false if an
// earlier run has moved everything.
func (m migration) prepare(ctx context.Context) (left bool, err error) {
	for _, suffix := range []string{todo, done} {
		if err := m.drain(ctx, suffix); err != nil {
			return false, err
		}
	}
	if left, err = m.isThere(ctx, todo); err != nil || !left {
		return false, err
	}
	if err := m.exec(ctx, append(m.createStaging(), m.like(done, todo))...); err != nil {
		return false, err
	}
	// No TTL: rows must not vanish between a copy and its count.
	ttl, err := m.number(ctx, fmt.Sprintf("SELECT countIf(match(engine_full, ' TTL ')) FROM system.tables WHERE database = %s AND name = %s",
		m.database(), quoteText(m.table()+copying)))
	if err != nil || ttl == 0 {
		return true, err
	}
	return true, m.exec(ctx, "ALTER TABLE "+m.name(copying)+" REMOVE TTL")
}

// drain waits until nobody uses a table who began before: inserts that found it
// under its old name, and statements of an earlier run whose answer never came.
// What they write is in the table afterwards. DETACH and SYNC is the one
// statement that waits and destroys nothing.
func (m migration) drain(ctx context.Context, suffix string) error {
	there, err := m.isThere(ctx, suffix)
	if err != nil {
		return err
	}
	if there {
		if err := m.exec(ctx, "DETACH TABLE "+m.name(suffix)+" SYNC"); err != nil {
			return err
		}
	} else { // did an earlier run get no further?
		n, err := m.number(ctx, fmt.Sprintf("SELECT count() FROM system.detached_tables WHERE database = %s AND table = %s",
			m.database(), quoteText(m.table()+suffix)))
		if err != nil || n == 0 {
			return err
		}
	}
	return m.exec(ctx, "ATTACH TABLE "+m.name(suffix))
}

// finish drops what is empty and no longer needed.
func (m migration) finish(ctx context.Context) error {
	for _, suffix := range []string{todo, copying, staging} {
		there, err := m.isThere(ctx, suffix)
		if err != nil {
			return err
		}
		if !there {
			continue // dropped by an earlier run
		}
		if left, err := m.number(ctx, "SELECT count() FROM "+m.name(suffix)); err != nil {
			return err
		} else if left > 0 {
			return fmt.Errorf("clickhouse: migrate: %d rows came into %s meanwhile: run it again", left, m.table()+suffix)
		}
	}
	if err := m.compare(ctx); err != nil {
		return err
	}
	here := m.Schema
	here.Cluster = "" // the lookup is this server's
	statements, err := here.DropLookup()
	if err != nil {
		return err
	}
	statements = append(statements, m.dropStaging()...)
	return m.exec(ctx, append(statements,
		"DROP TABLE IF EXISTS "+m.name(todo)+" SYNC",
		"DROP TABLE IF EXISTS "+m.name(copying)+" SYNC")...)
}

// compare holds the table against all that has been moved, day by day. The table
// may have more, as new spans come, but not less.
func (m migration) compare(ctx context.Context) error {
	if there, err := m.isThere(ctx, done); err != nil || !there {
		return err
	}
	if err := m.syncReplicas(ctx, m.local()); err != nil {
		return err
	}
	var young string // what the new table's TTL cannot have dropped yet
	if m.TTL > 0 {
		young = fmt.Sprintf(" WHERE Timestamp > (SELECT now()) - toIntervalSecond(%d)", int64((m.TTL-time.Minute)/time.Second))
	}
	var days uint64
	var first string
	query := fmt.Sprintf("SELECT count(), toString(min(day)) FROM (SELECT day FROM (\n"+
		"SELECT toDate(Timestamp, 'UTC') AS day, toInt64(count()) AS n FROM %[1]s%[3]s GROUP BY day UNION ALL\n"+
		"SELECT toDate(Timestamp, 'UTC') AS day, -toInt64(count()) AS n FROM %[2]s%[3]s GROUP BY day)\n"+
		"GROUP BY day HAVING sum(n) < 0)", m.name(""), m.name(done), young)
	if err := m.db.QueryRowContext(ctx, query).Scan(&days, &first); err != nil {
		return fmt.Errorf("clickhouse: migrate: compare %s with %s: %w", m.table(), m.table()+done, err)
	}
	if days > 0 {
		return fmt.Errorf("clickhouse: migrate: of %d days, the first %s, %s has fewer spans than %s: "+
			"insert what is missing from there, or drop those days there if you deleted the spans meanwhile, and run it again",
			days, first, m.table(), m.table()+done)
	}
	return nil
}
