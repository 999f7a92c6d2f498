// Package btree answers: what do different kinds of keys cost in a B-tree?
//
// An ID is often the primary key of a table in PostgreSQL. Unordered keys touch pages all over the
// index: it grows larger, more pages are split, and more full pages go to the WAL. Rows are
// inserted into a real PostgreSQL, and its own statistics show the costs.
package btree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
)

// perCommit is the number of rows that a transaction inserts.
const perCommit = 1000

// quarters is the number of checkpoints, in equal parts of the rows. The first change of a page
// after a checkpoint writes the whole page into the WAL, which is the long-term cost of unordered
// keys.
const quarters = 4

// tries is how often each kind of key is measured, each time in a new table.
const tries = 3

// keyKind is a kind of primary key.
type keyKind struct {
	what, column string
	next         func() any
}

func keyKinds() ([]keyKind, *idgen.Generator, error) {
	node, err := snowflake.NewNode(1)
	if err != nil {
		return nil, nil, err
	}
	g := idgen.New()
	ours := func() [16]byte {
		id, _ := g.NewIDs(context.Background())
		return id
	}
	return []keyKind{
		{"random (UUIDv4)", "uuid", func() any { return [16]byte(uuid.New()) }},
		{"random (UUIDv4)", "bytea", func() any { id := uuid.New(); return id[:] }},
		{"UUIDv7", "uuid", func() any { return [16]byte(uuid.Must(uuid.NewV7())) }},
		{"Snowflake", "bigint", func() any { return node.Generate().Int64() }},
		{"traceflake", "uuid", func() any { return ours() }},
		{"traceflake", "bytea", func() any { id := ours(); return id[:] }},
	}, g, nil
}

// tree holds the costs of an index and of its inserts.
type tree struct {
	keyKind
	index, wal, images int64 // bytes; images is the whole pages in the WAL
	splits             int64
	density            float64
	took               time.Duration
}

// Costs are the figures of all kinds of keys.
type Costs struct {
	version string
	buffers int64 // shared_buffers, in bytes
	rows    int
	trees   []tree // the runs of median time
}

// Measure inserts rows with each kind of key, several times.
func Measure(ctx context.Context, progress io.Writer, rows int) (b Costs, err error) {
	server, err := servers.Postgres(ctx)
	if err != nil {
		return b, err
	}
	b, err = insertAll(ctx, progress, server.DSN(), rows)
	return b, errors.Join(err, server.Close())
}

func insertAll(ctx context.Context, progress io.Writer, dsn string, rows int) (b Costs, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	b.rows = rows
	const server = "SELECT current_setting('server_version'), pg_size_bytes(current_setting('shared_buffers'))"
	if err := conn.QueryRow(ctx, server).Scan(&b.version, &b.buffers); err != nil {
		return b, err
	}
	// pg_walinspect reads WAL that a checkpoint would remove, and checkpoints must happen at the
	// same rows for every key.
	for _, sql := range []string{
		"CREATE EXTENSION pg_walinspect", "CREATE EXTENSION pgstattuple",
		"ALTER SYSTEM SET wal_keep_size = '8GB'", "ALTER SYSTEM SET max_wal_size = '64GB'", "ALTER SYSTEM SET checkpoint_timeout = '1d'",
		"SELECT pg_reload_conf()",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return b, fmt.Errorf("%s: %w", sql, err)
		}
	}
	kinds, g, err := keyKinds()
	if err != nil {
		return b, err
	}
	runs := make([][]tree, len(kinds))
	for try := range tries {
		fmt.Fprintf(progress, "btree %d/%d: %d rows of %d kinds\n", try+1, tries, rows, len(kinds))
		for i, k := range kinds {
			t, err := insert(ctx, conn, k, rows)
			if err != nil {
				return b, fmt.Errorf("%s as %s: %w", k.what, k.column, err)
			}
			runs[i] = append(runs[i], t)
		}
	}
	for _, r := range runs {
		slices.SortFunc(r, func(a, b tree) int { return int(a.took - b.took) })
		b.trees = append(b.trees, r[len(r)/2])
	}
	if n := g.Fallbacks(); n > 0 {
		return b, fmt.Errorf("%d calls got random IDs of the fallback", n)
	}
	return b, nil
}

// insert fills a new table. It makes the keys of a transaction before the timing starts.
func insert(ctx context.Context, conn *pgx.Conn, k keyKind, rows int) (t tree, err error) {
	t.keyKind = k
	table := "keys_" + k.column // the connection caches a table's types
	for _, sql := range []string{
		"DROP TABLE IF EXISTS " + table,
		"CREATE TABLE " + table + " (id " + k.column + " PRIMARY KEY, n bigint NOT NULL) WITH (autovacuum_enabled = false)", // autovacuum writes WAL too
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return t, err
		}
	}
	checkpoint := max(rows/quarters/perCommit, 1) * perCommit
	var before, after string
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&before); err != nil {
		return t, err
	}
	for n := 0; n < rows; n += perCommit {
		if n%checkpoint == 0 {
			if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
				return t, err
			}
		}
		copied := make([][]any, min(perCommit, rows-n))
		for i := range copied {
			copied[i] = []any{k.next(), int64(n + i)}
		}
		start := time.Now()
		_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, []string{"id", "n"}, pgx.CopyFromRows(copied))
		if err != nil {
			return t, err
		}
		t.took += time.Since(start)
	}
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&after); err != nil {
		return t, err
	}
	err = conn.QueryRow(ctx, `
		SELECT pg_relation_size($3::regclass), pg_wal_lsn_diff($2::pg_lsn, $1::pg_lsn)::bigint,
		       (SELECT avg_leaf_density FROM pgstatindex($3::regclass))`, before, after, table+"_pkey").Scan(&t.index, &t.wal, &t.density)
	if err != nil {
		return t, err
	}
	// SPLIT_R puts the new key on the right page, SPLIT_L on the left one.
	err = conn.QueryRow(ctx, `
		SELECT coalesce(sum("count") FILTER (WHERE "resource_manager/record_type" IN ('Btree/SPLIT_L', 'Btree/SPLIT_R')), 0)::bigint,
		       coalesce(sum(fpi_size), 0)::bigint
		FROM pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true)`, before, after).Scan(&t.splits, &t.images)
	if err == nil && rows >= perCommit && t.splits == 0 {
		err = errors.New("no page was split: the WAL's statistics do not have the expected form")
	}
	return t, err
}

// Report returns the section of the results.
func (b Costs) Report() string {
	rows := [][]string{{"key", "column", "index", "leaves filled", "pages split", "WAL", "whole pages in it", "time"}}
	mib := func(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
	for _, t := range b.trees {
		rows = append(rows, []string{t.what, "`" + t.column + "`", mib(t.index), fmt.Sprintf("%.0f %%", t.density), fmt.Sprint(t.splits),
			mib(t.wal), mib(t.images), fmt.Sprintf("%.1f s", t.took.Seconds())})
	}
	largest := slices.MaxFunc(b.trees, func(a, b tree) int { return int(a.index - b.index) }).index
	fits := "every index fits in it; the cost of unordered keys in an index that does not fit is not measured here"
	if largest > b.buffers {
		fits = "the largest index does not fit in it"
	}
	return strings.TrimLeft(fmt.Sprintf(`
%d rows of a key and a bigint, in transactions of %d (COPY), into a table with a primary key; PostgreSQL %s, durable
as by default. One connection; each transaction's keys are made before its timing starts. A checkpoint before each
quarter of the rows, no other checkpoints, no autovacuum: the WAL is that of the inserts alone. Each kind is measured
%d times, in turns, each time in a new table; the row is the run of median time, without the checkpoints. Pages split:
Btree/SPLIT records in the WAL (pg_walinspect); leaves filled: pgstatindex.
shared_buffers is %s; %s.

%s`, b.rows, perCommit, b.version, tries, mib(b.buffers), fits, text.Table(rows)), "\n")
}
