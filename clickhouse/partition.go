package clickhouse

import (
	"context"
	"fmt"
)

// step does what the tables' state says is next. Each state has one meaning:
//
//	copying has rows                    its copy is missing or in doubt: make it
//	copying is empty, staging has rows  the copy is whole and kept: move it
//	both are empty                      take the next partition
func (m migration) step(ctx context.Context) (p Progress, more bool, err error) {
	for _, in := range []struct {
		suffix string
		next   func(context.Context, string) (Progress, error)
	}{{copying, m.copy}, {staging, m.move}, {todo, m.take}} {
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
func (m migration) newest(ctx context.Context, suffix string) (partition string, err error) {
	if suffix == staging {
		if err := m.syncReplicas(ctx, staging+m.local()); err != nil {
			return "", err
		}
	}
	query := "SELECT max(_partition_id) FROM " + m.name(suffix)
	if err := m.db.QueryRowContext(ctx, query).Scan(&partition); err != nil {
		return "", fmt.Errorf("clickhouse: migrate: look for the next partition of %s: %w", m.table()+suffix, err)
	}
	return partition, nil
}

// syncReplicas lets every replica see what has been written and moved.
func (m migration) syncReplicas(ctx context.Context, suffix string) error {
	if m.Cluster == "" {
		return nil
	}
	return m.exec(ctx, "SYSTEM SYNC REPLICA"+onCluster(m.Cluster)+" "+m.name(suffix)+" LIGHTWEIGHT")
}

// take brings the next partition to hand.
func (m migration) take(ctx context.Context, partition string) (Progress, error) {
	return Progress{}, m.exec(ctx, movePartition(m.name(todo), "", partition, m.name(copying)))
}

func (m migration) createStaging() []string {
	return m.createTables(staging+m.local(), staging, 0, m.mark)
}

// dropStaging waits for whoever still writes into it. What is in it is a copy,
// so that the server's limit on the size of what is dropped does not apply.
func (m migration) dropStaging() []string {
	drop := func(suffix string) string {
		return "DROP TABLE IF EXISTS " + m.name(suffix) + onCluster(m.Cluster) + " SYNC SETTINGS max_table_size_to_drop = 0"
	}
	if m.Cluster == "" {
		return []string{drop(staging)}
	}
	return []string{drop(staging), drop(staging + m.local())}
}

// copy fills a new staging table with what copying holds, proves it, and keeps the original.
func (m migration) copy(ctx context.Context, partition string) (Progress, error) {
	// Any number of days, as the old table may be partitioned otherwise; and
	// copied a second time, blocks must not pass for repetitions.
	settings := " SETTINGS max_partitions_per_insert_block = 0, insert_deduplicate = 0"
	if m.Cluster != "" {
		settings += ", distributed_foreground_insert = 1"
	}
	statements := append(m.dropStaging(), m.createStaging()...)
	statements = append(statements, "INSERT INTO "+m.name(staging)+" ("+columnNames()+")\nSELECT "+columnNames()+" FROM "+m.name(copying)+settings)
	if err := m.exec(ctx, statements...); err != nil {
		return Progress{}, err
	}
	original, err := m.contents(ctx, copying)
	if err != nil {
		return Progress{}, err
	}
	if err := m.syncReplicas(ctx, staging+m.local()); err != nil {
		return Progress{}, err
	}
	staged, err := m.contents(ctx, staging)
	if err != nil {
		return Progress{}, err
	}
	if staged != original {
		return Progress{}, fmt.Errorf("clickhouse: migrate: the copy of partition %s differs: it has %d rows of %d, or others; nothing was lost, run it again",
			partition, staged.rows, original.rows)
	}
	return Progress{}, m.exec(ctx, movePartition(m.name(copying), "", partition, m.name(done)))
}

// contents tell whether two tables hold the same spans.
type contents struct{ rows, checksum uint64 }

func (m migration) contents(ctx context.Context, suffix string) (c contents, err error) {
	query := "SELECT count(), sum(cityHash64(" + columnNames() + ")) FROM " + m.name(suffix)
	if err := m.db.QueryRowContext(ctx, query).Scan(&c.rows, &c.checksum); err != nil {
		return c, fmt.Errorf("clickhouse: migrate: count the rows of %s: %w", m.table()+suffix, err)
	}
	return c, nil
}

// move puts a partition of the copy into the table.
func (m migration) move(ctx context.Context, partition string) (p Progress, err error) {
	rows, err := m.number(ctx, "SELECT count() FROM "+m.name(staging)+" WHERE _partition_id = "+quoteText(partition))
	if err != nil {
		return p, err
	}
	if err := m.exec(ctx, movePartition(m.name(staging+m.local()), onCluster(m.Cluster), partition, m.name(m.local()))); err != nil {
		return p, err
	}
	moved, err := m.number(ctx, "SELECT count() FROM "+m.name(done))
	if err != nil {
		return p, err
	}
	left, err := m.number(ctx, "SELECT count() FROM "+m.name(todo))
	return Progress{Partition: partition, Rows: rows, Moved: moved, Left: left}, err
}

func movePartition(from, on, partition, to string) string {
	return "ALTER TABLE " + from + on + " MOVE PARTITION ID " + quoteText(partition) + " TO TABLE " + to
}
