// Command clickhouse measures what the layouts of a table of spans cost and save: it
// stores the same generated spans in each, with a share of random trace IDs, runs
// the queries of tools.sql and our own, and counts what ClickHouse actually read.
//
//	make bench-clickhouse
//
// writes results.json and RESULTS.md. Rows and bytes carry over to other machines;
// of CPU time only the ratios do.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := start(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench/clickhouse:", err)
		os.Exit(1)
	}
}

// exporter is the name of the layout to which the others are compared: the table
// of the Collector's exporter, with its lookup table and random IDs.
const exporter = "exporter"

// layout is a table and the share of random trace IDs in it, in percent.
type layout struct {
	Name   string
	Random int
}

func (l layout) String() string { return fmt.Sprintf("%s, %d %% random", l.Name, l.Random) }

var layouts = []layout{
	{exporter, 100}, {"service", 0}, {"service", 50}, {"lookup", 50}, {"trace", 0}, {"overlay", 0},
	{"service", 10}, {"service", 100}, {"lookup", 0}, {"lookup", 100}, {"trace", 50}, {"overlay", 50},
	{"granules of 512", 0}, {"granules of 2048", 0}, {"eight hours", 0}, {"blocks of 16 kB", 0}, {"filters of 1024", 0}, {"five-column key", 0}, {"map buckets", 0},
}

var schemas = map[string]clickhouse.Schema{
	"trace":   {Layout: clickhouse.TraceFirst},
	"overlay": {Layout: clickhouse.Overlay},
	"lookup":  {KeepLookup: true},
}

// schema is that of a layout; of the exporter's table, the default, which is not created.
func (l layout) schema() clickhouse.Schema {
	s := schemas[l.Name]
	s.Table = table
	return s
}

// trials are other tables than ServiceFirst: replacements in its statements.
var trials = map[string][]string{
	"five-column key":  {"PRIMARY KEY (toStartOfInterval(Timestamp, toIntervalHour(4), 'UTC'), ServiceName, SpanName)\n", ""},
	"granules of 512":  {"index_granularity = 1024", "index_granularity = 512", "GRANULARITY 8", "GRANULARITY 16", "GRANULARITY 2", "GRANULARITY 4"},
	"granules of 2048": {"index_granularity = 1024", "index_granularity = 2048", "GRANULARITY 8", "GRANULARITY 4", "GRANULARITY 2", "GRANULARITY 1"},
	"blocks of 16 kB":  {"min_compress_block_size = 8192", "min_compress_block_size = 16384"},
	"eight hours":      {"toIntervalHour(4)", "toIntervalHour(8)"},
	"filters of 1024":  {"GRANULARITY 2", "GRANULARITY 1"},
	"map buckets":      {"index_granularity = 1024", "map_serialization_version = 'with_buckets', map_buckets_min_avg_size = 1, index_granularity = 1024"},
}

// results are everything measured, in results.json.
type results struct {
	Machine, ClickHouse string
	Measured            []measured
	CPU                 []cpuRatio
}

// run is what made a result.
type run struct {
	Date, Commit string
	Spans, Day   int // in all, and of the day that is queried
}

// String is the argument that stores so many spans.
func (r run) String() string { return fmt.Sprintf("-spans %d", (r.Spans+50_000)/100_000*100) }

func start(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench/clickhouse", flag.ContinueOnError)
	spans := flags.Int("spans", 5000, "`thousands` of spans, 60 % of them on the day that is queried and the rest on the two days before; 0 only writes RESULTS.md and reads.svg again")
	out := flags.String("out", ".", "`folder` for the results; others that it has are kept")
	only := flags.String("layouts", "", "measure only these `names`, separated by commas, each or with :share")
	rounds := flags.Int("cpu", 0, "instead of queries, measure the CPU time to load and merge, in `n` interleaved rounds")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := &results{}
	file := filepath.Join(*out, "results.json")
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, r); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	save := func() error {
		slices.SortStableFunc(r.Measured, func(a, b measured) int {
			return cmp.Or(b.Spans-a.Spans, slices.Index(layouts, a.layout)-slices.Index(layouts, b.layout))
		})
		text, err := json.MarshalIndent(r, "", "\t")
		picture, drawn := r.svg()
		if drawn == nil {
			drawn = os.WriteFile(filepath.Join(*out, "reads.svg"), picture, 0o644)
		}
		return errors.Join(err, drawn, os.WriteFile(file, append(text, '\n'), 0o644), os.WriteFile(filepath.Join(*out, "RESULTS.md"), []byte(r.markdown()), 0o644))
	}
	if *spans == 0 {
		return save()
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("the results name the commit: %w", err)
	}
	d, err := newDataset(ctx, *spans*1000)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	d.Date, d.Commit = time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit))
	r.Machine = fmt.Sprintf("%s, %d cores", cpuName(), runtime.NumCPU())
	if err := d.scan(ctx, "SELECT version()", &r.ClickHouse); err != nil {
		return err
	}
	var chosen []layout
	for _, l := range layouts {
		names := strings.Split(*only, ",")
		if *only == "" || slices.Contains(names, l.Name) || slices.Contains(names, fmt.Sprintf("%s:%d", l.Name, l.Random)) {
			chosen = append(chosen, l)
		}
	}
	if *rounds > 0 {
		if r.CPU, err = d.cpu(ctx, *rounds, slices.DeleteFunc(chosen, func(l layout) bool { return l.Name == exporter })); err != nil {
			return err
		}
		return save()
	}
	for _, l := range chosen {
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), l)
		m, err := d.measure(ctx, l)
		if err != nil {
			return fmt.Errorf("%v: %w", l, err)
		}
		r.Measured = append(slices.DeleteFunc(r.Measured, func(old measured) bool { return old.layout == l && old.Spans == d.Spans }), m)
		if err := save(); err != nil { // what is measured is kept, should a later step fail
			return err
		}
	}
	return nil
}

func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, name, _ := strings.Cut(string(text), "model name\t: ")
	name, _, _ = strings.Cut(name, "\n")
	return cmp.Or(name, "unknown CPU")
}
