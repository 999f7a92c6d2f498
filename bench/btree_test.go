package bench

import (
	"context"
	"flag"
	"testing"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/integration/servers/child"
)

var rows = flag.Int("rows", 20_000, "rows in each table of BenchmarkBTree")

// perCommit is the number of rows that a transaction inserts.
const perCommit = 1000

// quarters is the number of checkpoints, in equal parts of the rows. The first change of a page
// after a checkpoint writes the whole page into the WAL, which is the long-term cost of unordered
// keys.
const quarters = 4

// key is a kind of primary key.
type key struct {
	name, column string
	next         func() any
}

func keys() []key {
	node, g := must(snowflake.NewNode(1)), idgen.New()
	return []key{
		{"uuidv4", "uuid", func() any { return [16]byte(uuid.New()) }},
		{"uuidv7", "uuid", func() any { return [16]byte(uuid.Must(uuid.NewV7())) }},
		{"snowflake", "bigint", func() any { return node.Generate().Int64() }},
		{"traceflake", "uuid", func() any {
			id, _ := g.NewIDs(context.Background())
			return [16]byte(id)
		}},
	}
}

// BenchmarkBTree inserts rows with different kinds of primary keys into a new table of a real
// PostgreSQL, whose own statistics show the costs: unordered keys touch pages all over the index,
// so that it grows larger, more pages are split, and more full pages go to the WAL. Run it with
// -benchtime 1x.
func BenchmarkBTree(b *testing.B) {
	conn := newBTree(b)
	for _, k := range keys() {
		b.Run("key="+k.name, func(b *testing.B) {
			for range b.N {
				for unit, value := range k.insert(b, conn, *rows) {
					b.ReportMetric(value, unit)
				}
			}
		})
	}
}

// newBTree returns a connection to a new database whose checkpoints happen only on request, at the
// same rows for every key.
func newBTree(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn := child.ForTest(tb, servers.Postgres).Connect(tb)
	execute(tb, conn, "CREATE EXTENSION pg_walinspect",
		// pg_walinspect reads WAL that a checkpoint would remove.
		"ALTER SYSTEM SET wal_keep_size = '8GB'", "ALTER SYSTEM SET max_wal_size = '64GB'",
		"ALTER SYSTEM SET checkpoint_timeout = '1d'",
		"SELECT pg_reload_conf()")
	return conn
}

func execute(tb testing.TB, conn *pgx.Conn, statements ...string) {
	tb.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(tb.Context(), sql); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
}

// insert fills a new table and returns its costs by unit.
func (k key) insert(tb testing.TB, conn *pgx.Conn, rows int) map[string]float64 {
	tb.Helper()
	table := "keys_" + k.column // the connection caches a table's types
	execute(tb, conn, "DROP TABLE IF EXISTS "+table,
		// autovacuum writes WAL too
		"CREATE TABLE "+table+" (id "+k.column+
			" PRIMARY KEY, n bigint NOT NULL) WITH (autovacuum_enabled = false)")
	checkpoint := max(rows/quarters/perCommit, 1) * perCommit
	var before string
	if err := conn.QueryRow(tb.Context(),
		"SELECT pg_current_wal_insert_lsn()::text").Scan(&before); err != nil {
		tb.Fatal(err)
	}
	for n := 0; n < rows; n += perCommit {
		if n%checkpoint == 0 {
			execute(tb, conn, "CHECKPOINT")
		}
		copied := make([][]any, min(perCommit, rows-n))
		for i := range copied {
			copied[i] = []any{k.next(), int64(n + i)}
		}
		if _, err := conn.CopyFrom(tb.Context(), pgx.Identifier{table}, []string{"id", "n"},
			pgx.CopyFromRows(copied)); err != nil {
			tb.Fatal(err)
		}
	}
	var index, wal, images, splits float64
	// SPLIT_R puts the new key on the right page, SPLIT_L on the left one.
	err := conn.QueryRow(tb.Context(), `SELECT pg_relation_size($2::regclass) / 2 ^ 20,
		pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1::pg_lsn)::float8 / 2 ^ 20,
		sum(fpi_size)::float8 / 2 ^ 20,
		sum("count") FILTER (WHERE "resource_manager/record_type" IN
			('Btree/SPLIT_L', 'Btree/SPLIT_R'))::float8
		FROM pg_get_wal_stats($1::pg_lsn, pg_current_wal_insert_lsn(), true)`, before,
		table+"_pkey").Scan(&index, &wal, &images, &splits)
	if err != nil {
		tb.Fatal(err)
	}
	return map[string]float64{"index-MiB": index, "wal-MiB": wal, "images-MiB": images,
		"splits": splits}
}

func TestOrderedKeysSplitFewerPages(t *testing.T) {
	conn := newBTree(t)
	splits := make(map[string]float64)
	for _, k := range keys() {
		cost := k.insert(t, conn, 3000)
		splits[k.name] = cost["splits"]
		if cost["index-MiB"] < 8*3000/float64(1<<20) || cost["wal-MiB"] < cost["index-MiB"] {
			t.Errorf("%s: %v", k.name, cost)
		}
	}
	if splits["traceflake"] >= splits["uuidv4"] {
		t.Errorf("pages split: %v", splits)
	}
}
