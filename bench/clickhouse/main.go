// Command clickhouse measures tables of generated spans as `traceflake clickhouse compare` measures
// those of a user, and prints a page of results for a group of tables:
//
//	cd bench/clickhouse && go run . GROUP
//
// Bytes and rows carry over to other machines; of CPU time only the ratios do, which differ by a
// tenth between runs. layouts has the tables of others, and spans.sql the spans.
package main

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	_ "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
	"github.com/traceflake/traceflake/internal/compare"
)

var (
	//go:embed layouts/*.sql
	layouts embed.FS
	//go:embed spans.sql
	generate string
)

// group is a page: tables with the same spans, but for the share of random IDs.
type group struct {
	rate     float64 // million spans a day
	hours    float64 // of spans
	services int
	// ours, ours-…, or files of layouts with a + between them; and the percentage of random IDs
	tables []string
}

var groups = map[string]group{
	"100-million": {100, 1, 25, []string{"exporter 1", "ours 1", "ours 0", "ours 100"}},
	"5-million": {5, 3, 25, []string{"exporter 1", "ours 1", "ours 0", "ours 100", "ours-none 1",
		"ours-all 1"}},
	"of-the-exporter": {5, 3, 25, []string{"exporter 1", "exporter+text 1", "exporter+by_trace 0",
		"exporter+by_trace 100", "exporter+zstd+by_trace 0"}},
	"1-million":    {1, 24, 25, []string{"exporter 1", "ours 1", "ours-tuned 1"}},
	"older-server": {100, 1, 25, []string{"exporter 1", "ours 1"}},
	"check":        {0.5, 2, 25, []string{"exporter 1", "ours 1"}},
}

// ours are the layouts of package clickhouse.
var ours = map[string]clickhouse.Projection{"ours": clickhouse.Charts,
	"ours-tuned": clickhouse.Charts, "ours-none": clickhouse.NoProjection,
	"ours-all": clickhouse.AllColumns}

// tuned has the settings that docs/clickhouse.md names for users of tools.
const tuned = "?max_read_buffer_size_local_fs=16384&min_table_rows_to_use_projection_index=100000"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	name := strings.Join(os.Args[1:], " ")
	page, err := groups[name].page(ctx, name)
	stop()
	if err != nil {
		log.Fatal("bench/clickhouse: ", err)
	}
	fmt.Print(page)
}

// page measures the tables and returns them as text.
func (g group) page(ctx context.Context, name string) (string, error) {
	if g.tables == nil {
		return "", fmt.Errorf("no group is called %q", name)
	}
	var all []compare.Table
	var version string
	for _, title := range g.tables {
		log.Print(name, ": ", title)
		t, err := g.measure(ctx, title, &version)
		if err == nil {
			err = same(all, t)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", title, err)
		}
		all = append(all, t)
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=8", "HEAD").Output()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%g million spans a day, %g hours, %d services. "+
		"ClickHouse %s, commit %.8s.\n\n", name, g.rate, g.hours, g.services, version, commit)
	err = errors.Join(err, compare.Write(&b, all))
	return b.String(), err
}

// same compares the answers with those of another table with the same IDs.
func same(others []compare.Table, t compare.Table) error {
	_, share, _ := strings.Cut(t.Title, " ")
	for _, other := range others {
		if strings.HasSuffix(other.Title, " "+share) {
			return compare.Differs(other, t)
		}
	}
	return nil
}

// measure loads a table in a server of its own, and measures it.
func (g group) measure(ctx context.Context, title string, version *string) (compare.Table, error) {
	t := compare.Table{Title: title + " %", Name: "spans", Lookup: "spans_trace_id_ts"}
	e, err := servers.ClickHouse(ctx)
	if err != nil {
		return t, err
	}
	defer func() { _ = e.Close() }()
	t.Database = e.Database()
	layout, random, _ := strings.Cut(title, " ")
	dsn := e.DSN()
	if layout == "ours-tuned" {
		dsn += tuned
	}
	db, err := sql.Open("clickhouse", dsn)
	if err != nil {
		return t, err
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(ctx, "SELECT version()").Scan(version); err != nil {
		return t, err
	}
	if err := create(ctx, e, layout, *version); err != nil {
		return t, err
	}
	seconds, err := g.load(ctx, e, random)
	if err != nil {
		return t, err
	}
	t.Values = []compare.Value{{Name: "CPU seconds for a million spans", N: seconds}}
	from := time.Date(2026, 10, 20, 8, 0, 0, 0, time.UTC)
	return t, t.Measure(ctx, db, compare.Period{From: from,
		To: from.Add(time.Duration(g.hours * float64(time.Hour)))}, true)
}

// create creates a layout's tables: ours, which the files of other layouts replace.
func create(ctx context.Context, e *servers.Engine, layout, version string) error {
	all, err := clickhouse.Schema{Table: "spans", Version: version,
		Projection: ours[layout]}.Statements()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(layout+"+only_optimize", "+") {
		text, err := layouts.ReadFile("layouts/" + name + ".sql")
		if _, own := ours[name]; err != nil && !own {
			return err
		}
		all = append(all, strings.Split(strings.TrimRight(string(text), ";\n"), ";\n")...)
	}
	return e.Exec(ctx, all...)
}

// load stores the spans in blocks of 100,000, as a busy Collector does, merges them, and returns
// the seconds of CPU time that the server took for it, for a million spans.
func (g group) load(ctx context.Context, e *servers.Engine, random string) (float64, error) {
	const (
		columns = "Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, " +
			"ResourceAttributes, SpanAttributes, Duration, StatusCode, StatusMessage, " +
			"`Events.Timestamp`, `Events.Name`, `Events.Attributes`"
		insert = "INSERT INTO spans (" + columns + ") SELECT " + columns + " FROM source " +
			"SETTINGS max_threads = 1, max_insert_threads = 1, max_insert_block_size = 100000, " +
			"min_insert_block_size_rows = 100000, min_insert_block_size_bytes = 0"
	)
	spans := g.rate * 1e6 / 24 * g.hours
	source := strings.NewReplacer("{services}", fmt.Sprint(g.services), "{random}", random,
		"{us}", fmt.Sprint(864000/g.rate), "{count}", fmt.Sprint(int(spans))).Replace(generate)
	err1 := e.Exec(ctx, "CREATE TABLE source ENGINE = StripeLog AS "+source)
	before, err2 := cpu(ctx, e)
	err3 := e.Exec(ctx, insert, "OPTIMIZE TABLE spans FINAL",
		"OPTIMIZE TABLE spans_trace_id_ts FINAL")
	after, err4 := cpu(ctx, e)
	return (after - before) / spans * 1e6, errors.Join(err1, err2, err3, err4)
}

// cpu returns the seconds of CPU time that ClickHouse has used, on Linux.
func cpu(ctx context.Context, e *servers.Engine) (seconds float64, err error) {
	r, err := e.Query(ctx, "SELECT (toUInt64(f[12]) + toUInt64(f[13])) / 100 FROM (SELECT "+
		"splitByChar(' ', splitByString(') ', line)[-1]) AS f "+
		"FROM file('/proc/self/stat', LineAsString))")
	if err == nil {
		_, err = fmt.Sscan(r.Rows[0][0], &seconds)
	}
	return seconds, err
}
