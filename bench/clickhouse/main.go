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
	err := run(ctx, os.Args[1:])
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

// isOneOf reports whether a list has the layout, as name or name:share. The empty one has all.
func (l layout) isOneOf(list string) bool {
	names := strings.Split(list, ",")
	return list == "" || slices.Contains(names, l.Name) || slices.Contains(names, fmt.Sprintf("%s:%d", l.Name, l.Random))
}

var layouts = []layout{
	{exporter, 100},
	{"service", 0}, {"service", 50}, {"trace", 0}, {"trace", 50}, {"overlay", 0}, {"overlay", 50},
	{"service", 10}, {"service", 100}, {keepLookup, 0}, {keepLookup, 50}, {keepLookup, 100}, {textIndex, 100},
}

func init() {
	for name := range trials {
		schemas[name] = clickhouse.Schema{Table: table}
		layouts = append(layouts, layout{name, 0}, layout{name, 50})
	}
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

// keepLookup is ServiceFirst with the exporter's lookup table.
const keepLookup = "lookup"

// textIndex is the exporter's table with what others propose for its TraceId.
const textIndex = "text"

var schemas = map[string]clickhouse.Schema{
	"service":  {Table: table},
	"trace":    {Table: table, Layout: clickhouse.TraceFirst},
	"overlay":  {Table: table, Layout: clickhouse.Overlay},
	keepLookup: {Table: table, KeepLookup: true},
}

// results are everything measured with so many spans, and where.
type results struct {
	Date, Machine, ClickHouse, Commit, Command string
	Spans, Day                                 int // in all, and of the day that is queried
	Measured                                   []measured
	CPU                                        []cpuRatio
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench/clickhouse", flag.ContinueOnError)
	spans := flags.Int("spans", 5000, "`thousands` of spans, 60 % of them on the day that is queried and the rest on the two days before")
	out := flags.String("out", ".", "`folder` for the results")
	only := flags.String("layouts", "", "measure only these `names`, separated by commas, each or with :share, and keep the other results")
	rounds := flags.Int("cpu", 0, "instead of queries, measure the CPU time to load and merge, in `n` interleaved rounds")
	report := flags.Bool("report", false, "only write RESULTS.md again, from results.json and those of the `folders` given as arguments")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *report {
		for _, folder := range append(flags.Args(), *out) {
			runs, err := load(folder)
			if err != nil {
				return err
			}
			if err := save(*out, runs...); err != nil {
				return err
			}
		}
		return nil
	}
	if flags.NArg() > 0 || *spans < 100 {
		return fmt.Errorf("unexpected argument %q, or fewer than 100 thousand spans: see -h", flags.Args())
	}
	runs, err := load(*out)
	if err != nil {
		return err
	}
	var given []string // which make them again, wherever they are written to
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "out" {
			given = append(given, "-"+f.Name+" "+f.Value.String())
		}
	})
	d, err := newDataset(ctx, *spans*1000)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	r := &results{}
	if i := slices.IndexFunc(runs, func(r *results) bool { return r.Spans == d.spans }); i >= 0 {
		r = runs[i]
	}
	if r.Commit == "" || *only == "" {
		commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
		if err != nil {
			return fmt.Errorf("the results name the commit: %w", err)
		}
		*r = results{Date: time.Now().UTC().Format(time.DateOnly), Machine: fmt.Sprintf("%s, %d cores", cpuName(), runtime.NumCPU()),
			Commit: strings.TrimSpace(string(commit)), Command: "make bench-clickhouse ARGS=\"" + strings.Join(given, " ") + "\"",
			Spans: d.spans, Day: d.day, CPU: r.CPU, Measured: r.Measured}
		if err := d.scan(ctx, "SELECT version()", &r.ClickHouse); err != nil {
			return err
		}
	}
	if *rounds > 0 {
		var all []layout
		for _, l := range layouts {
			if l.isOneOf(*only) && l.Name != exporter {
				all = append(all, l)
			}
		}
		if r.CPU, err = d.cpu(ctx, *rounds, all); err != nil {
			return err
		}
		return save(*out, r)
	}
	for _, l := range layouts {
		if !l.isOneOf(*only) {
			continue
		}
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), l)
		m, err := d.measure(ctx, l)
		if err != nil {
			return fmt.Errorf("%v: %w", l, err)
		}
		r.Measured = append(slices.DeleteFunc(r.Measured, func(old measured) bool { return old.layout() == l }), m)
		if err := save(*out, r); err != nil { // what is measured is kept, should a later step fail
			return err
		}
	}
	return nil
}

// load reads the results of a folder, one of each size.
func load(folder string) (runs []*results, err error) {
	text, err := os.ReadFile(filepath.Join(folder, "results.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &runs)
	}
	return runs, err
}

// save adds results to those of a folder: other processes may measure other
// sizes or layouts.
func save(folder string, more ...*results) error {
	runs, err := load(folder)
	if err != nil {
		return err
	}
	for _, r := range more {
		i := slices.IndexFunc(runs, func(old *results) bool { return old.Spans == r.Spans })
		if i < 0 {
			runs = append(runs, r)
			continue
		}
		old := runs[i]
		runs[i] = r
		for _, m := range old.Measured {
			if !slices.ContainsFunc(r.Measured, func(n measured) bool { return n.layout() == m.layout() }) {
				r.Measured = append(r.Measured, m)
			}
		}
		if len(r.CPU) == 0 {
			r.CPU = old.CPU
		}
	}
	slices.SortFunc(runs, func(a, b *results) int { return b.Spans - a.Spans })
	for _, r := range runs { // the exporter's first
		slices.SortStableFunc(r.Measured, func(a, b measured) int { return slices.Index(layouts, a.layout()) - slices.Index(layouts, b.layout()) })
	}
	text, err := json.MarshalIndent(runs, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(folder, "results.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, "RESULTS.md"), []byte(markdown(runs)), 0o644))
}

func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, name, _ := strings.Cut(string(text), "model name\t: ")
	name, _, _ = strings.Cut(name, "\n")
	if name == "" {
		return "unknown CPU"
	}
	return name
}
