package migrate

import (
	"context"
	"fmt"

	"github.com/traceflake/traceflake/clickhouse/internal/ddl"
)

// step does the next step, which the state of the tables determines:
//
//	_moving has rows                 its copy is missing or unproven: make it
//	_moving is empty, _copy has rows the copy is complete: move it
//	both are empty                   take the next partition
func (m *migration) step(ctx context.Context) (p Progress, more bool, err error) {
	for _, in := range []struct {
		suffix string
		next   func(context.Context, string) (Progress, error)
	}{{moving, m.copy}, {copied, m.move}, {remaining, m.take}} {
		partition, err := m.newest(ctx, in.suffix)
		if err != nil {
			return p, false, err
		}
		if partition != "" {
			p, err = in.next(ctx, partition)
			return p, true, err
		}
	}
	return p, false, nil
}

// newest is the ID of a table's last partition, or "" if it has no rows.
func (m *migration) newest(ctx context.Context, suffix string) (partition string, err error) {
	if suffix == copied {
		if err := m.syncReplicas(ctx, copied+m.Rows()); err != nil {
			return "", err
		}
	}
	query := "SELECT max(_partition_id) FROM " + m.Quoted(suffix)
	if err := m.db.QueryRowContext(ctx, query).Scan(&partition); err != nil {
		return "", fmt.Errorf("clickhouse: migrate: look for the next partition of %s: %w", m.Named(suffix), err)
	}
	return partition, nil
}

// syncReplicas waits until every replica has what was written and moved.
func (m *migration) syncReplicas(ctx context.Context, suffix string) error {
	if m.Cluster == "" {
		return nil
	}
	return m.exec(ctx, "SYSTEM SYNC REPLICA"+m.OnCluster()+" "+m.Quoted(suffix)+" LIGHTWEIGHT")
}

// take moves the next partition to _moving.
func (m *migration) take(ctx context.Context, partition string) (Progress, error) {
	return Progress{}, m.exec(ctx, m.movePartition(remaining, "", partition, moving))
}

func (m *migration) createCopy() []string {
	tables := m.Create(copied+m.Rows(), copied, 0, m.mark)
	return append(append(tables[:1:1], m.addColumns(copied+m.Rows())...), tables[1:]...)
}

// dropCopy waits for statements that still write into it. It is only a copy, so
// the server's limit on the size of dropped tables is lifted.
func (m *migration) dropCopy() []string {
	drop := func(suffix string) string {
		return "DROP TABLE IF EXISTS " + m.Quoted(suffix) + m.OnCluster() + " SYNC SETTINGS max_table_size_to_drop = 0"
	}
	if m.Cluster == "" {
		return []string{drop(copied)}
	}
	return []string{drop(copied), drop(copied + m.Rows())}
}

// copyStatements fill a new copy with the current partition.
func (m *migration) copyStatements() []string {
	// Any number of days, as the old table may be partitioned differently; and
	// blocks copied a second time must not be deduplicated.
	settings := " SETTINGS max_partitions_per_insert_block = 0, insert_deduplicate = 0"
	if len(m.extra) > 0 {
		settings += ", insert_allow_materialized_columns = 1"
	}
	if m.Cluster != "" {
		settings += ", distributed_foreground_insert = 1"
	}
	return append(append(m.dropCopy(), m.createCopy()...), fmt.Sprintf("INSERT INTO %s (%[2]s)\nSELECT %[2]s FROM %[3]s%[4]s",
		m.Quoted(copied), m.columnNames(), m.Quoted(moving), settings))
}

// copy makes the copy, checks it, and keeps the original.
func (m *migration) copy(ctx context.Context, partition string) (Progress, error) {
	if err := m.exec(ctx, m.copyStatements()...); err != nil {
		return Progress{}, err
	}
	original, err := m.contents(ctx, moving)
	if err != nil {
		return Progress{}, err
	}
	if err := m.syncReplicas(ctx, copied+m.Rows()); err != nil {
		return Progress{}, err
	}
	result, err := m.contents(ctx, copied)
	if err != nil {
		return Progress{}, err
	}
	if result != original {
		return Progress{}, fmt.Errorf("clickhouse: migrate: the copy of partition %s differs: it has %d rows of %d, or others; "+
			"nothing was lost, run it again", partition, result.rows, original.rows)
	}
	return Progress{}, m.exec(ctx, m.movePartition(moving, "", partition, old))
}

// contents are equal if two tables have the same spans.
type contents struct{ rows, checksum uint64 }

func (m *migration) contents(ctx context.Context, suffix string) (c contents, err error) {
	// A hash of NULL would be NULL; a tuple of it as text is not.
	values := ddl.ColumnNames()
	for _, e := range m.extra {
		if e.stored {
			values += ", toString(tuple(" + ddl.QuoteName(e.name) + "))"
		}
	}
	query := "SELECT count(), sum(cityHash64(" + values + ")) FROM " + m.Quoted(suffix)
	if err := m.db.QueryRowContext(ctx, query).Scan(&c.rows, &c.checksum); err != nil {
		return c, fmt.Errorf("clickhouse: migrate: count the rows of %s: %w", m.Named(suffix), err)
	}
	return c, nil
}

// move moves a partition of the copy into the table.
func (m *migration) move(ctx context.Context, partition string) (p Progress, err error) {
	rows, err := m.number(ctx, "SELECT count() FROM "+m.Quoted(copied)+" WHERE _partition_id = "+ddl.QuoteText(partition))
	if err != nil {
		return p, err
	}
	if err := m.exec(ctx, m.movePartition(copied+m.Rows(), m.OnCluster(), partition, m.Rows())); err != nil {
		return p, err
	}
	moved, err := m.number(ctx, "SELECT count() FROM "+m.Quoted(old))
	if err != nil {
		return p, err
	}
	left, err := m.number(ctx, "SELECT count() FROM "+m.Quoted(remaining))
	return Progress{Partition: partition, Rows: rows, Moved: moved, Left: left}, err
}

func (m *migration) movePartition(from, on, partition, to string) string {
	return "ALTER TABLE " + m.Quoted(from) + on + " MOVE PARTITION ID " + ddl.QuoteText(partition) + " TO TABLE " + m.Quoted(to)
}
