// Package pruning answers: what does the order of IDs save if only the minimum and maximum of a
// block are known?
//
// PostgreSQL's BRIN index keeps minimum and maximum for each range of pages, and a Parquet file
// for each row group. Both are small, and useful only if adjacent rows have similar values. The
// same spans are stored three times, in the order in which they arrive, with trace IDs that are
// random, UUIDs of version 7, and ours. Queries for one trace, and for the traces of five minutes,
// report how much they read.
package pruning

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/bench/internal/child"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/integration/servers"
)

// asked is the number of queries of each kind; figures are medians.
const asked = 25

// Row holds what was read with one kind of ID.
type Row struct {
	Kind string
	// PostgreSQL: pages of the table, and pages that queries read.
	Pages, OnePages, WindowPages int
	BRIN, BTree                  int64 // bytes of an index of trace_id
	// Parquet: row groups and bytes in the file, and those that queries read.
	Groups, OneGroups, WindowGroups int
	Bytes, OneBytes, WindowBytes    int
}

// Costs holds the results and the versions of the engines.
type Costs struct {
	Spans              int
	PostgreSQL, DuckDB string // versions
	Rows               []Row
}

// Measure stores the spans and runs the queries. It downloads the engine for Parquet into the
// given folder if it is not there.
func Measure(ctx context.Context, progress io.Writer, engine string, spans int) (c Costs, err error) {
	if err := fetch(ctx, engine); err != nil {
		return c, err
	}
	server, err := servers.Postgres(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return measure(ctx, progress, server.DSN(), engine, spans)
}

func measure(ctx context.Context, progress io.Writer, dsn, engine string, spans int) (c Costs, err error) {
	dir, err := os.MkdirTemp("", "traceflake-pruning-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&c.PostgreSQL); err != nil {
		return c, err
	}
	traces := spans / perTrace
	order := arrival(traces)
	c.Spans = len(order)
	csv := filepath.Join(dir, "spans.csv")
	for i, k := range kinds() {
		fmt.Fprintf(progress, "pruning %d/3: %d spans, %s\n", i+1, len(order), k.name)
		ids, err := k.ids(traces)
		if err != nil {
			return c, err
		}
		if err := writeCSV(csv, order, ids); err != nil {
			return c, err
		}
		one, windows := k.questions(ids, asked)
		row := Row{Kind: k.name}
		if err := row.postgres(ctx, conn, csv, one, windows); err != nil {
			return c, fmt.Errorf("PostgreSQL, %s: %w", k.name, err)
		}
		if c.DuckDB, err = row.parquet(ctx, engine, csv, filepath.Join(dir, "spans.parquet"), one, windows); err != nil {
			return c, fmt.Errorf("DuckDB, %s: %w", k.name, err)
		}
		c.Rows = append(c.Rows, row)
	}
	return c, nil
}

// postgres stores the rows in a table with BRIN indexes.
func (r *Row) postgres(ctx context.Context, conn *pgx.Conn, csv string, one, windows []query) error {
	file, err := os.Open(csv)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	run := func(statements ...string) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	}
	if err := run("DROP TABLE IF EXISTS spans", `CREATE UNLOGGED TABLE spans
		(trace_id uuid, span_id bigint, ms bigint, service text, name text, duration bigint)`); err != nil {
		return err
	}
	if _, err := conn.PgConn().CopyFrom(ctx, file, "COPY spans FROM STDIN (FORMAT csv)"); err != nil {
		return err
	}
	if err := run("CREATE INDEX by_id ON spans USING brin (trace_id)", "CREATE INDEX by_time ON spans USING brin (ms)",
		"SET max_parallel_workers_per_gather = 0", "VACUUM ANALYZE spans"); err != nil {
		return err
	}
	if r.OnePages, err = pages(ctx, conn, one); err != nil {
		return err
	}
	if r.WindowPages, err = pages(ctx, conn, windows); err != nil {
		return err
	}
	if err := run("CREATE INDEX tree ON spans (trace_id)"); err != nil {
		return err
	}
	return conn.QueryRow(ctx, "SELECT pg_relation_size('spans') / current_setting('block_size')::int, pg_relation_size('by_id'), pg_relation_size('tree')").
		Scan(&r.Pages, &r.BRIN, &r.BTree)
}

// pages returns the median number of pages that the queries read.
func pages(ctx context.Context, conn *pgx.Conn, queries []query) (int, error) {
	var all []int
	for _, q := range queries {
		if q.Column != "ms" && q.Column != "trace_id" {
			return 0, fmt.Errorf("no column %q", q.Column)
		}
		sql := fmt.Sprintf("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*), sum(duration) FROM spans WHERE %s BETWEEN '%s' AND '%s'", q.Column, q.Low, q.High)
		var plan []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		if err := conn.QueryRow(ctx, sql).Scan(&plan); err != nil {
			return 0, err
		}
		all = append(all, plan[0].Plan.Hit+plan[0].Plan.Read)
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

//go:embed parquet.mjs
var script string

// parquet stores the rows in a file and returns the version of the engine that reads it.
func (r *Row) parquet(ctx context.Context, engine, csv, parquet string, one, windows []query) (string, error) {
	job, err := json.Marshal(map[string]any{"engine": engine, "csv": csv, "parquet": parquet, "queries": append(slices.Clone(one), windows...)})
	if err != nil {
		return "", err
	}
	node := exec.CommandContext(ctx, "node", "--input-type=module", "--eval", script)
	node.Stdin = bytes.NewReader(job)
	out, err := child.Output(node)
	if err != nil {
		return "", err
	}
	var answer struct {
		Version string
		Groups  int
		Queries []struct{ Groups, Bytes, Spans int }
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", fmt.Errorf("%q: %w", out, err)
	}
	if len(answer.Queries) != len(one)+len(windows) {
		return "", fmt.Errorf("%d answers to %d queries", len(answer.Queries), len(one)+len(windows))
	}
	for i, q := range answer.Queries {
		if q.Spans < perTrace {
			return "", fmt.Errorf("query %d found %d spans, want at least %d", i, q.Spans, perTrace)
		}
	}
	middle := func(from, to int, value func(i int) int) int {
		var all []int
		for i := from; i < to; i++ {
			all = append(all, value(i))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	groups, read := func(i int) int { return answer.Queries[i].Groups }, func(i int) int { return answer.Queries[i].Bytes }
	n := len(one)
	r.Groups, r.OneGroups, r.WindowGroups = answer.Groups, middle(0, n, groups), middle(n, len(answer.Queries), groups)
	r.OneBytes, r.WindowBytes = middle(0, n, read), middle(n, len(answer.Queries), read)
	info, err := os.Stat(parquet)
	if err != nil {
		return "", err
	}
	r.Bytes = int(info.Size())
	return answer.Version, nil
}

var (
	//go:embed package.json
	packages []byte
	//go:embed package-lock.json
	lock []byte
)

// fetch installs DuckDB for Node unless it is already installed.
func fetch(ctx context.Context, engine string) error {
	done, err := os.ReadFile(filepath.Join(engine, "fetched.json"))
	if err == nil && bytes.Equal(done, lock) {
		return nil
	}
	if err := os.MkdirAll(engine, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"package.json": packages, "package-lock.json": lock} {
		if err := os.WriteFile(filepath.Join(engine, name), content, 0o644); err != nil {
			return err
		}
	}
	npm := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = engine
	if _, err := child.Output(npm); err != nil {
		return fmt.Errorf("fetch DuckDB for Node (needs Node 20 and npm): %w", err)
	}
	return os.WriteFile(filepath.Join(engine, "fetched.json"), lock, 0o644)
}

// Report returns the section of the results.
func (c Costs) Report() string {
	pg := [][]string{{"PostgreSQL, pages", "one trace", "five minutes", "of", "BRIN index", "B-tree index"}}
	parquet := [][]string{{"Parquet", "one trace: row groups, read", "five minutes: row groups, read", "of"}}
	for _, r := range c.Rows {
		pg = append(pg, []string{r.Kind, fmt.Sprint(r.OnePages), fmt.Sprint(r.WindowPages), fmt.Sprint(r.Pages), kib(r.BRIN), kib(r.BTree)})
		parquet = append(parquet, []string{
			r.Kind, fmt.Sprintf("%d, %s", r.OneGroups, kib(int64(r.OneBytes))), fmt.Sprintf("%d, %s", r.WindowGroups, kib(int64(r.WindowBytes))),
			fmt.Sprintf("%d, %s", r.Groups, kib(int64(r.Bytes))),
		})
	}
	return fmt.Sprintf(`%d spans of one day, %d in a trace, stored in the order in which they arrive. Medians of %d queries. Five minutes are a
range of trace IDs; with random IDs they are a range of the time column, which has its own BRIN index and minima.
Pages are buffers of 8 KiB that EXPLAIN ANALYZE counted in PostgreSQL %s, with BRIN's default of 128 pages a range.
Row groups are those that minimum and maximum of the column do not exclude; the bytes are what DuckDB %s read from the
file, with its Bloom filters too.

%s
%s
![What one trace reads](plots/pruning.svg)
`, c.Spans, perTrace, asked, c.PostgreSQL, c.DuckDB, text.Table(pg), text.Table(parquet))
}

func kib(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
