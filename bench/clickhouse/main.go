// Command clickhouse measures tables of generated spans as `traceflake clickhouse compare` measures
// those of a user, and writes each group of tables to its section of RESULTS.md:
//
//	cd bench/clickhouse && go run . [GROUP…]
//
// The group check is only printed, and measured only if it is named.
//
// Bytes and rows carry over to other machines; of CPU time only the ratios do. layouts has the
// tables of others, and spans.sql the spans.
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
	"regexp"
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

// group is a section of the page: tables with the same spans, but for the share of random IDs.
type group struct {
	name     string
	rate     float64 // million spans a day
	hours    float64 // of spans
	services int
	kind     string // "", unmerged, narrow (without attributes), or cpu: its CPU time alone
	// ours, ours-…, or files of layouts with a + between them; and the percentage of random IDs
	tables []string
}

var plan = []group{
	{"100", 100, 2, 25, "", []string{"exporter 1", "ours 1", "ours 0", "ours 50", "ours 100",
		"ours-none 1", "exporter+text 1"}},
	{"5", 5, 24, 25, "", []string{"exporter 1", "ours 0", "ours 1", "ours 100"}},
	{"services", 5, 3, 200, "", []string{"exporter 1", "ours 1"}},
	{"0.5", 0.5, 48, 25, "", []string{"exporter 1", "ours 0", "ours 1", "ours 100"}},
	{"others", 5, 3, 25, "", []string{"exporter 1", "ours 1", "ours-none 1", "ours-all 1",
		"exporter+text 1", "exporter+by_trace 0", "exporter+by_trace 100",
		"exporter+zstd+by_trace 0"}},
	{"parts", 5, 6, 25, "unmerged", []string{"exporter 1", "ours 1"}},
	{"1day", 0.2, 24, 25, "narrow", []string{"exporter 1", "ours 1"}},
	{"30days", 0.2, 720, 25, "narrow", []string{"exporter 1", "ours 1"}},
	{"cpu", 100, 0.24, 25, "cpu", []string{"exporter 1", "ours 0", "ours 1", "ours 100",
		"ours-none 1"}},
	{check, 0.5, 2, 25, "", []string{"exporter 1", "ours 1"}},
	{older, 100, 2, 25, "", []string{"exporter 1", "ours 1"}},
}

const (
	check = "check"
	older = "older" // on the ClickHouse of `make engines`
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for _, g := range plan {
		if !slices.Contains(os.Args[1:], g.name) && (len(os.Args) > 1 || g.name == check) {
			continue
		}
		if g.name == older {
			_ = os.Unsetenv("TRACEFLAKETEST_CLICKHOUSE_PYTHON") // cannot fail
		}
		section, err := g.section(ctx)
		switch {
		case err == nil && g.name == check:
			fmt.Print(section)
		case err == nil:
			err = replace("RESULTS.md", section)
		}
		if err != nil {
			log.Fatalf("bench/clickhouse: %s: %v", g.name, err)
		}
	}
}

// replace writes a section to a page, in place of that with the same heading.
func replace(page, section string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	heading, _, _ := strings.Cut(section, "\n")
	all := regexp.MustCompile(`(?m)^## `).Split(strings.TrimSpace(string(text)), -1)
	i := slices.IndexFunc(all, func(s string) bool {
		return strings.HasPrefix(s, strings.TrimPrefix(heading, "## ")+"\n")
	})
	if i < 0 {
		i, all = len(all), append(all, "")
	}
	all[i] = strings.TrimPrefix(section, "## ")
	for i := range all {
		all[i] = strings.TrimSpace(all[i]) + "\n"
	}
	return os.WriteFile(page, []byte(strings.Join(all, "\n## ")), 0o644)
}

// section measures the tables and returns them as text.
func (g group) section(ctx context.Context) (string, error) {
	all := make([]compare.Table, len(g.tables))
	cpu := make([][]float64, len(g.tables))
	var version string
	for round := 0; round == 0 || g.kind == "cpu" && round < 3; round++ {
		for i, t := range g.tables {
			log.Print(g.name, ": ", t)
			var seconds float64
			var err error
			if all[i], version, seconds, err = g.measure(ctx, t); err != nil {
				return "", fmt.Errorf("%s: %w", t, err)
			}
			cpu[i] = append(cpu[i], seconds)
			slices.Sort(cpu[i])
		}
	}
	for i, t := range all {
		if g.kind == "cpu" {
			all[i].Values = []compare.Value{{Name: "CPU seconds of a million spans, median",
				Megabytes: cpu[i][1]}, {Name: "lowest", Megabytes: cpu[i][0]},
				{Name: "highest", Megabytes: cpu[i][2]}}
		} else if err := same(all[:i], t); err != nil {
			return "", err
		}
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%g million spans a day, %g hours, %d services", g.name, g.rate,
		g.hours, g.services)
	if g.kind != "" {
		fmt.Fprintf(&b, "; %s", g.kind)
	}
	fmt.Fprintf(&b, ". ClickHouse %s, commit %s.\n\n", version, strings.TrimSpace(string(commit)))
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
func (g group) measure(ctx context.Context, title string) (t compare.Table, version string,
	cpu float64, err error) {
	e, err := servers.ClickHouse(ctx)
	if err != nil {
		return t, "", 0, err
	}
	defer func() { _ = e.Close() }()
	r, err := e.Query(ctx, "SELECT version()")
	if err != nil {
		return t, "", 0, err
	}
	version = r.Rows[0][0]
	layout, random, _ := strings.Cut(title, " ")
	statements, err := statements(layout, version)
	if err == nil {
		err = e.Exec(ctx, statements...)
	}
	if err == nil {
		cpu, err = g.load(ctx, e, random)
	}
	if err != nil {
		return t, "", 0, err
	}
	t = compare.Table{Title: title + " %", Database: e.Database(), Name: "spans",
		Lookup: "spans_trace_id_ts"}
	if g.kind == "cpu" {
		return t, version, cpu, nil
	}
	db, err := sql.Open("clickhouse", e.DSN())
	if err != nil {
		return t, "", 0, err
	}
	defer func() { _ = db.Close() }()
	from := time.Date(2026, 10, 20, 8, 0, 0, 0, time.UTC)
	return t, version, 0, t.Measure(ctx, db, compare.Period{From: from,
		To: from.Add(time.Duration(g.hours * float64(time.Hour)))}, true)
}

// ours are the layouts of package clickhouse.
var ours = map[string]clickhouse.Projection{"ours": clickhouse.Charts,
	"ours-none": clickhouse.NoProjection, "ours-all": clickhouse.AllColumns}

// statements returns the statements that create a layout's tables.
func statements(layout, version string) ([]string, error) {
	projection, ok := ours[layout]
	all, err := clickhouse.Schema{Table: "spans", Version: version,
		Projection: projection}.Statements()
	if err != nil {
		return nil, err
	}
	files := "unmerged"
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

// step is how many spans are generated at a time. No table whose CPU time counts has more.
const step = 2_000_000

// load stores the spans in blocks of 100,000, as a busy Collector does, merges them, and returns
// the seconds of CPU time that the server took for it since the last step began, for a million
// spans.
func (g group) load(ctx context.Context, e *servers.Engine, random string) (float64, error) {
	columns := "Timestamp, TraceId, SpanId, SpanName, ServiceName, Duration"
	if g.kind != "narrow" {
		columns += ", ParentSpanId, SpanKind, ResourceAttributes, SpanAttributes, StatusCode, " +
			"StatusMessage, `Events.Timestamp`, `Events.Name`, `Events.Attributes`"
	}
	spans := int(g.rate * 1e6 / 24 * g.hours)
	var before float64
	for from := 0; from < spans; from += step {
		source := strings.NewReplacer("{services}", fmt.Sprint(g.services), "{random}", random,
			"{us}", fmt.Sprint(864000/g.rate), "{from}", fmt.Sprint(from), "{count}",
			fmt.Sprint(min(step, spans-from))).Replace(generate)
		err := e.Exec(ctx, "DROP TABLE IF EXISTS source", "CREATE TABLE source ENGINE = Memory "+
			"AS SELECT "+columns+" FROM ("+source+")")
		if err != nil {
			return 0, err
		}
		if before, err = cpu(ctx, e); err != nil {
			return 0, err
		}
		if err := e.Exec(ctx, "INSERT INTO spans ("+columns+") SELECT "+columns+" FROM source "+
			"SETTINGS max_threads = 1, max_insert_threads = 1, max_insert_block_size = 100000, "+
			"min_insert_block_size_rows = 100000, min_insert_block_size_bytes = 0"); err != nil {
			return 0, err
		}
	}
	last := []string{"DROP TABLE source"}
	if g.kind != "unmerged" {
		last = append(last, "OPTIMIZE TABLE spans FINAL", "OPTIMIZE TABLE spans_trace_id_ts FINAL")
	}
	err := e.Exec(ctx, last...)
	after, noCPU := cpu(ctx, e)
	return (after - before) / float64(spans) * 1e6, errors.Join(err, noCPU)
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
