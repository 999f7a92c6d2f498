package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/traceflake/traceflake/integration/servers"
)

// store is a database with the tables of one layout.
type store struct{ *servers.Engine }

// open returns a database with the functions on trace IDs.
func open(ctx context.Context) (store, error) {
	e, err := servers.ClickHouse(ctx)
	if err != nil {
		return store{}, err
	}
	statements, err := ours.Statements()
	if err != nil {
		return store{e}, err
	}
	for _, s := range statements {
		if strings.Contains(s, "FUNCTION") {
			if err := e.Exec(ctx, s); err != nil {
				return store{e}, err
			}
		}
	}
	return store{e}, nil
}

// create replaces the tables by empty ones of a layout.
func (s store) create(ctx context.Context, l layout) error {
	// Views come first: their names are longer.
	for _, name := range s.column(ctx, "SELECT name FROM system.tables WHERE database = "+
		"currentDatabase() AND startsWith(name, 'spans') ORDER BY name DESC") {
		if err := s.Exec(ctx, "DROP TABLE "+name+" SYNC"); err != nil {
			return err
		}
	}
	statements, err := l.statements()
	if err != nil {
		return err
	}
	return s.Exec(ctx, statements...)
}

// each runs a statement on every table that has rows of its own.
func (s store) each(ctx context.Context, statement string) error {
	for _, name := range s.column(ctx, "SELECT name FROM system.tables WHERE database = "+
		"currentDatabase() AND startsWith(name, 'spans') AND engine LIKE '%MergeTree' "+
		"ORDER BY name") {
		if err := s.Exec(ctx, fmt.Sprintf(statement, name)); err != nil {
			return err
		}
	}
	return nil
}

// merge merges each partition to one part.
func (s store) merge(ctx context.Context) error {
	return s.each(ctx, "OPTIMIZE TABLE %s FINAL SETTINGS optimize_skip_merged_partitions = 1")
}

// column returns the only column of a result, or nothing if the query fails.
func (s store) column(ctx context.Context, query string) (all []string) {
	r, err := s.Query(ctx, query)
	if err != nil {
		return nil
	}
	for _, row := range r.Rows {
		all = append(all, row[0])
	}
	return all
}

// scan reads the values of a query's only row.
func (s store) scan(ctx context.Context, query string, into ...any) error {
	r, err := s.Query(ctx, query)
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(strings.Join(r.Rows[0], " "), into...)
	return err
}

// ids returns the trace IDs in the first column of a result.
func (s store) ids(ctx context.Context, query string) (ids [][16]byte, err error) {
	r, err := s.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	for _, row := range r.Rows {
		id, err := hex.DecodeString(row[0])
		if err != nil || len(id) != 16 {
			return nil, fmt.Errorf("%s is not a trace ID", row[0])
		}
		ids = append(ids, [16]byte(id))
	}
	return ids, nil
}

// cost holds what a query reads with ClickHouse's caches empty; of several alike, the mean.
type cost struct {
	Name string
	Rows uint64
	Disk uint64 // bytes from files: columns, marks and indexes
}

// measure measures queries. Each must return the given number of rows, if that is not negative.
func (s store) measure(ctx context.Context, name string, rows int, queries ...string) (c cost,
	err error) {
	c.Name = name
	for _, sql := range queries {
		r, err := s.Reads(ctx, sql)
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		if rows >= 0 && len(r.Rows) != rows {
			return c, fmt.Errorf("%s: %d rows, want %d: %s", name, len(r.Rows), rows, sql)
		}
		c.Rows, c.Disk = c.Rows+r.Read.Rows, c.Disk+r.Read.Disk
	}
	n := uint64(max(1, len(queries)))
	c.Rows, c.Disk = c.Rows/n, c.Disk/n
	return c, nil
}

// footprint holds the size of a layout's tables.
type footprint struct {
	Disk        float64 // bytes
	Parts       int
	Key         float64 // bytes of memory: of the primary key, if all of it was used
	Granularity float64 // of the sizes of granules, never evicted
	Marks       float64 // in the mark cache after all columns were read
}

// footprint measures the tables. Where a cache keeps primary keys, it is left out for a moment: its
// size is rounded up for each part, which a table of few spans shows.
func (s store) footprint(ctx context.Context) (f footprint, err error) {
	cached := s.column(ctx, "SELECT name FROM system.tables WHERE database = currentDatabase() "+
		"AND create_table_query LIKE '%use_primary_key_cache = 1%' ORDER BY name")
	for _, name := range cached {
		if err := s.Exec(ctx, "ALTER TABLE "+name+" MODIFY SETTING use_primary_key_cache = 0",
			"DETACH TABLE "+name+" SYNC", "ATTACH TABLE "+name); err != nil {
			return f, err
		}
	}
	if err := s.Exec(ctx, "SYSTEM DROP MARK CACHE"); err != nil {
		return f, err
	}
	if err := s.each(ctx, "SELECT * FROM %s WHERE NOT ignore(*) AND TraceId > '' FORMAT Null "+
		"SETTINGS use_skip_indexes = 0, max_threads = 1, "+
		"optimize_use_projections = 0"); err != nil {
		return f, err
	}
	if err := s.scan(ctx, "SELECT value FROM system.metrics WHERE metric = 'MarkCacheBytes'",
		&f.Marks); err != nil {
		return f, err
	}
	return f, s.scan(ctx, "SELECT sum(bytes_on_disk), count(), sum(primary_key_bytes_in_memory), "+
		"sum(index_granularity_bytes_in_memory) FROM system.parts WHERE active AND "+
		"database = currentDatabase() AND startsWith(table, 'spans')",
		&f.Disk, &f.Parts, &f.Key, &f.Granularity)
}
