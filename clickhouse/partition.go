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
	original, err := m.contents(ctx, copying)
	if err != nil {
		return p, false, err
	}
	if original.rows > 0 {
		if err := m.copy(ctx, original); err != nil {
			return p, false, err
		}
		return p, true, m.exec(ctx, movePartition(m.name(copying), "", original.partition, m.name(done)))
	}
	staged, err := m.contents(ctx, staging)
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
	return p, true, m.exec(ctx, movePartition(m.name(todo), "", partition, m.name(copying)))
}

// contents tell whether two tables hold the same spans.
type contents struct {
	rows, checksum uint64
	partition      string // one of them
}

func (m migration) contents(ctx context.Context, suffix string) (c contents, err error) {
	if suffix == staging {
		if err := m.syncReplicas(ctx, staging+m.local()); err != nil {
			return c, err
		}
	}
	query := "SELECT count(), sum(cityHash64(" + columnNames() + ")), any(_partition_id) FROM " + m.name(suffix)
	if err := m.db.QueryRowContext(ctx, query).Scan(&c.rows, &c.checksum, &c.partition); err != nil {
		return c, fmt.Errorf("clickhouse: migrate: count the rows of %s: %w", m.table()+suffix, err)
	}
	return c, nil
}

// syncReplicas lets every replica see what has been written and moved.
func (m migration) syncReplicas(ctx context.Context, suffix string) error {
	if m.Cluster == "" {
		return nil
	}
	return m.exec(ctx, "SYSTEM SYNC REPLICA"+onCluster(m.Cluster)+" "+m.name(suffix)+" LIGHTWEIGHT")
}

// next is a partition that is still to be moved, the newest first, or "".
func (m migration) next(ctx context.Context) (partition string, err error) {
	query := "SELECT max(_partition_id) FROM " + m.name(todo)
	if err := m.db.QueryRowContext(ctx, query).Scan(&partition); err != nil {
		return "", fmt.Errorf("clickhouse: migrate: look for the next partition of %s: %w", m.table()+todo, err)
	}
	return partition, nil
}

func (m migration) createStaging() []string {
	return m.createTables(staging+m.local(), staging, 0, m.mark)
}

// dropStaging waits for whoever still writes into it.
func (m migration) dropStaging() []string {
	drop := "DROP TABLE IF EXISTS " + m.name(staging) + onCluster(m.Cluster) + " SYNC"
	if m.Cluster == "" {
		return []string{drop}
	}
	return []string{drop, "DROP TABLE IF EXISTS " + m.name(staging+m.local()) + onCluster(m.Cluster) + " SYNC"}
}

// copy fills a new staging table with what copying holds, and proves it.
func (m migration) copy(ctx context.Context, original contents) error {
	// Any number of days, as the old table may be partitioned otherwise; and
	// copied a second time, blocks must not pass for repetitions.
	settings := " SETTINGS max_partitions_per_insert_block = 0, insert_deduplicate = 0"
	if m.Cluster != "" {
		settings += ", distributed_foreground_insert = 1"
	}
	statements := append(m.dropStaging(), m.createStaging()...)
	statements = append(statements, "INSERT INTO "+m.name(staging)+" ("+columnNames()+")\nSELECT "+columnNames()+" FROM "+m.name(copying)+settings)
	if err := m.exec(ctx, statements...); err != nil {
		return err
	}
	staged, err := m.contents(ctx, staging)
	if err != nil {
		return err
	}
	if staged.rows != original.rows || staged.checksum != original.checksum {
		return fmt.Errorf("clickhouse: migrate: the copy of partition %s differs: it has %d rows of %d, or others; nothing was lost, run it again",
			original.partition, staged.rows, original.rows)
	}
	return nil
}

// move puts the copy into the table.
func (m migration) move(ctx context.Context, staged contents) (p Progress, more bool, err error) {
	statement := movePartition(m.name(staging+m.local()), onCluster(m.Cluster), staged.partition, m.name(m.local()))
	if err := m.exec(ctx, statement); err != nil {
		return p, false, err
	}
	moved, err := m.number(ctx, "SELECT count() FROM "+m.name(done))
	if err != nil {
		return p, false, err
	}
	left, err := m.number(ctx, "SELECT count() FROM "+m.name(todo))
	return Progress{Partition: staged.partition, Rows: staged.rows, Moved: moved, Left: left}, true, err
}

func movePartition(from, on, partition, to string) string {
	return "ALTER TABLE " + from + on + " MOVE PARTITION ID " + quoteText(partition) + " TO TABLE " + to
}
