package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// finish compares the table with what has been moved, replaces the lookup table
// by views and drops what is empty and no longer needed.
func (m *migration) finish(ctx context.Context) error {
	for _, suffix := range []string{remaining, moving, copied} {
		there, err := m.isThere(ctx, suffix)
		if err != nil {
			return err
		}
		if !there {
			continue // dropped by an earlier run
		}
		if left, err := m.number(ctx, "SELECT count() FROM "+m.Quoted(suffix)); err != nil {
			return err
		} else if left > 0 {
			return fmt.Errorf("clickhouse: migrate: %d rows were inserted into %s meanwhile: run it again", left, m.Named(suffix))
		}
	}
	if err := m.compare(ctx); err != nil {
		return err
	}
	return m.exec(ctx, m.finishStatements()...)
}

func (m *migration) finishStatements() []string {
	var statements []string
	if !m.KeepLookup {
		here := m.Table
		here.Cluster = "" // the lookup is this server's
		statements = append(here.DropLookup(), m.TraceTimes()...)
	}
	return append(append(statements, m.dropCopy()...),
		"DROP TABLE IF EXISTS "+m.Quoted(remaining)+" SYNC",
		"DROP TABLE IF EXISTS "+m.Quoted(moving)+" SYNC")
}

// compare compares the table with all moved rows, day by day. The table may have
// more, since new spans arrive, but not fewer.
func (m *migration) compare(ctx context.Context) error {
	if there, err := m.isThere(ctx, old); err != nil || !there {
		return err
	}
	if err := m.syncReplicas(ctx, m.Rows()); err != nil {
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
		"GROUP BY day HAVING sum(n) < 0)", m.Quoted(""), m.Quoted(old), young)
	if err := m.db.QueryRowContext(ctx, query).Scan(&days, &first); err != nil {
		return fmt.Errorf("clickhouse: migrate: compare %s with %s: %w", m.Named(""), m.Named(old), err)
	}
	if days > 0 {
		return fmt.Errorf("clickhouse: migrate: of %d days, the first %s, %s has fewer spans than %s: "+
			"insert what is missing from there, or drop those days there if you deleted the spans meanwhile, and run it again",
			days, first, m.Named(""), m.Named(old))
	}
	return nil
}

// Statements returns what [Run] would execute from where the migration stands
// now, without the checks between the statements. It changes nothing, and
// refuses what Run refuses.
func Statements(ctx context.Context, db *sql.DB, s clickhouse.Schema) ([]string, error) {
	m, err := open(ctx, db, s)
	if err != nil {
		return nil, err
	}
	reached, err := m.look(ctx)
	if err != nil {
		return nil, err
	}
	switch reached {
	case noTable:
		return nil, m.noTable(ctx)
	case notNeeded:
		return s.Statements()
	}
	var all []string
	source := remaining
	if reached == notBegun {
		all, source = append([]string{m.like(moving, "")}, m.exchange()...), ""
	} else if n, err := m.detached(ctx, remaining); err != nil {
		return nil, err
	} else if n > 0 {
		return nil, fmt.Errorf("clickhouse: migrate: an earlier run was interrupted while %s was detached, "+
			"and its remaining rows are not visible: run the migration, or run %s and try again", m.Named(remaining), m.attach(remaining))
	}
	all = append(all, m.detach(remaining), m.attach(remaining))
	all = append(append(all, m.createCopy()...), m.like(old, remaining))
	ttl, err := m.hasTTL(ctx, source)
	if err != nil {
		return nil, err
	}
	if ttl {
		all = append(all, m.removeTTL())
	}
	var left []partition
	if reached == notBegun {
		left, err = m.partitions(ctx, "")
	} else {
		var complete []partition // in a copy that has only to be moved
		if left, err = m.partitions(ctx, moving); err == nil && len(left) == 0 {
			complete, err = m.partitions(ctx, copied)
		}
		for _, p := range complete {
			all = append(all, m.movePartition(copied+m.Rows(), m.OnCluster(), p.id, m.Rows()))
		}
		var more []partition
		if err == nil {
			more, err = m.partitions(ctx, remaining)
		}
		left = append(left, more...)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range left {
		all = append(all, m.movePartition(remaining, "", p.id, moving))
		all = append(all, m.copyStatements()...)
		all = append(all, m.movePartition(moving, "", p.id, old))
		for _, day := range p.days {
			all = append(all, m.movePartition(copied+m.Rows(), m.OnCluster(), day, m.Rows()))
		}
	}
	return append(all, m.finishStatements()...), nil
}

// partition is one of the old table, which may be partitioned in any way, and the
// days in it, which are the copy's partitions.
type partition struct {
	id   string
	days []string
}

// partitions returns those of a table, newest first, or none if it does not exist.
func (m *migration) partitions(ctx context.Context, suffix string) (all []partition, err error) {
	if there, err := m.isThere(ctx, suffix); err != nil || !there {
		return nil, err
	}
	err = m.rows(ctx, "SELECT _partition_id, toString(toYYYYMMDD(Timestamp)) AS day FROM "+m.Quoted(suffix)+
		"\nGROUP BY _partition_id, day ORDER BY _partition_id DESC, day DESC", 2, func(c []string) error {
		if len(all) == 0 || all[len(all)-1].id != c[0] {
			all = append(all, partition{id: c[0]})
		}
		last := &all[len(all)-1]
		last.days = append(last.days, c[1])
		return nil
	})
	return all, err
}
