// Command clickhouse measures tables of generated spans as `traceflake clickhouse compare` measures
// those of a user, and writes each group of tables to a page of results:
//
//	cd bench/clickhouse && go run . [GROUP…]
//
// The group check is only printed, and measured only if it is named. Bytes and rows carry over to
// other machines; of CPU time only the ratios do, which differ by a tenth between runs. layouts has
// the tables of others, and spans.sql the spans.
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
	"slices"
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
	name     string
	rate     float64 // million spans a day
	hours    float64 // of spans
	services int
	// ours, ours-…, or files of layouts with a + between them; and the percentage of random IDs
	tables []string
}

var plan = []group{
	{"100-million", 100, 1, 25, []string{"exporter 1", "ours 1", "ours 0", "ours 100"}},
	{"5-million", 5, 3, 25, []string{"exporter 1", "ours 1", "ours 0", "ours 100", "ours-none 1",
		"ours-all 1"}},
	{"of-the-exporter", 5, 3, 25, []string{"exporter 1", "exporter+text 1", "exporter+by_trace 0",
		"exporter+by_trace 100", "exporter+zstd+by_trace 0"}},
	{"1-million", 1, 24, 25, []string{"exporter 1", "ours 1", tuned + " 1"}},
	{check, 0.5, 2, 25, []string{"exporter 1", "ours 1"}},
	{older, 100, 1, 25, []string{"exporter 1", "ours 1"}},
}

// Groups that are treated differently.
const (
	check = "check"
	older = "older-server" // with the ClickHouse of `make engines`

	// A layout: ours, with the settings that docs/clickhouse.md names for users of tools.
	tuned    = "ours-tuned"
	settings = "?max_read_buffer_size_local_fs=16384&min_table_rows_to_use_projection_index=100000"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal("bench/clickhouse: ", err)
	}
}

// run measures the named groups, or all but check.
func run(ctx context.Context, names []string) error {
	for _, g := range plan {
		if !slices.Contains(names, g.name) && (len(names) > 0 || g.name == check) {
			continue
		}
		if g.name == older {
			_ = os.Unsetenv("TRACEFLAKETEST_CLICKHOUSE_VERSION") // cannot fail
		}
		page, err := g.page(ctx)
		switch {
		case err != nil:
		case g.name == check:
			fmt.Print(page)
		default:
			err = os.WriteFile("results/"+g.name+".md", []byte(page), 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}

// page measures the tables and returns them as text.
func (g group) page(ctx context.Context) (string, error) {
	var all []compare.Table
	var version string
	for _, title := range g.tables {
		log.Print(g.name, ": ", title)
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
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%g million spans a day, %g hours, %d services. "+
		"ClickHouse %s, commit %s.\n\n", g.name, g.rate, g.hours, g.services, version,
		strings.TrimSpace(string(commit)))
	err = compare.Write(&b, all, false)
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
	if layout == tuned {
		dsn += settings
	}
	db, err := sql.Open("clickhouse", dsn)
	if err != nil {
		return t, err
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(ctx, "SELECT version()").Scan(version); err != nil {
		return t, err
	}
	all, err := statements(layout, *version)
	if err == nil {
		err = e.Exec(ctx, all...)
	}
	if err != nil {
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

// ours are the layouts of package clickhouse.
var ours = map[string]clickhouse.Projection{"ours": clickhouse.Charts, tuned: clickhouse.Charts,
	"ours-none": clickhouse.NoProjection, "ours-all": clickhouse.AllColumns}

// statements returns the statements that create a layout's tables.
func statements(layout, version string) ([]string, error) {
	projection, ok := ours[layout]
	all, err := clickhouse.Schema{Table: "spans", Version: version,
		Projection: projection}.Statements()
	if err != nil {
		return nil, err
	}
	files := "only_optimize"
	if !ok {
		files = layout + "+" + files
		all = slices.DeleteFunc(all, func(s string) bool {
			return !strings.Contains(s, "FUNCTION")
		})
	}
	for name := range strings.SplitSeq(files, "+") {
		text, err := layouts.ReadFile("layouts/" + name + ".sql")
		if err != nil {
			return nil, err
		}
		all = append(all, strings.Split(strings.TrimRight(string(text), ";\n"), ";\n")...)
	}
	return all, nil
}

// load stores the spans in blocks of 100,000, as a busy Collector does, merges them, and returns
// the seconds of CPU time that the server took for it, for a million spans.
func (g group) load(ctx context.Context, e *servers.Engine, random string) (float64, error) {
	const (
		step    = 2_000_000 // spans that are generated at a time
		columns = "Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName, " +
			"ResourceAttributes, SpanAttributes, Duration, StatusCode, StatusMessage, " +
			"`Events.Timestamp`, `Events.Name`, `Events.Attributes`"
		insert = "INSERT INTO spans (" + columns + ") SELECT " + columns + " FROM source " +
			"SETTINGS max_threads = 1, max_insert_threads = 1, max_insert_block_size = 100000, " +
			"min_insert_block_size_rows = 100000, min_insert_block_size_bytes = 0"
	)
	spans := int(g.rate * 1e6 / 24 * g.hours)
	var used float64
	counted := func(statements ...string) error {
		before, err1 := cpu(ctx, e)
		err2 := e.Exec(ctx, statements...)
		after, err3 := cpu(ctx, e)
		used += after - before
		return errors.Join(err1, err2, err3)
	}
	for from := 0; from < spans; from += step {
		source := strings.NewReplacer("{services}", fmt.Sprint(g.services), "{random}", random,
			"{us}", fmt.Sprint(864000/g.rate), "{from}", fmt.Sprint(from), "{count}",
			fmt.Sprint(min(step, spans-from))).Replace(generate)
		err := e.Exec(ctx, "CREATE OR REPLACE TABLE source ENGINE = Memory AS SELECT "+columns+
			" FROM ("+source+")")
		if err == nil {
			err = counted(insert)
		}
		if err != nil {
			return 0, err
		}
	}
	err := counted("OPTIMIZE TABLE spans FINAL", "OPTIMIZE TABLE spans_trace_id_ts FINAL")
	return used / float64(spans) * 1e6, err
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
