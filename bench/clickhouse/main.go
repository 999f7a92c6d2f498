// Command clickhouse measures what the layouts of a table of spans cost and save: it
// stores the same generated spans in each, with a share of random trace IDs, runs
// the queries of tools.sql and our own, and counts what ClickHouse actually read.
//
//	make bench-clickhouse
//
// writes RESULTS.md and reads.svg. Rows and bytes carry over to other machines; of CPU
// time only the ratios do.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
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

// layout is a table and the share of random trace IDs in it, in percent.
type layout struct {
	Name   string
	Random int
}

func (l layout) String() string { return fmt.Sprintf("%s, %d %% random", l.Name, l.Random) }

// exporter is the table to which the others are compared: that of the Collector's exporter, with
// its lookup table and random IDs.
var exporter = layout{"exporter", 100}

var layouts = []layout{exporter, {"ours", 0}, {"ours", 1}, {"ours", 50}, {"overlay", 0}}

// schemas have the queries of a layout; see also exporterTraces.
var schemas = map[string]clickhouse.Schema{
	"exporter": {Table: table, Overlay: true, ReadOnly: true},
	"ours":     {Table: table},
	"overlay":  {Table: table, Overlay: true},
}

// results are everything measured.
type results struct {
	Date, Commit, Machine, ClickHouse string
	Spans, Day                        int // in all, and of the day that is queried
	Measured                          []measured
	LoadSpans                         int // spans of each round that measured the CPU time
}

const rounds = 3 // of CPU time

func start(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench/clickhouse", flag.ContinueOnError)
	spans := flags.Int("spans", 5000, "`thousands` of spans, 60 % of them on the day that is "+
		"queried and the rest on the two days before")
	load := flags.Int("cpu", 2500, "`thousands` of spans of each round that measures the CPU time")
	scales := flags.String("scale", "", "measure lookups in tables of so many `millions` of "+
		"spans, as in 1,4,16,64, and write SCALE.md")
	out := flags.String("out", ".", "`folder` for the results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("the results name the commit: %w", err)
	}
	r := results{Date: time.Now().UTC().Format(time.DateOnly),
		Commit:  strings.TrimSpace(string(commit)),
		Machine: fmt.Sprintf("%s, %d cores", cpuName(), runtime.NumCPU())}
	if *scales != "" {
		text, err := r.scaling(ctx, *scales)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(*out, "SCALE.md"), []byte(text), 0o644)
	}
	if err := r.measure(ctx, *spans*1000); err != nil {
		return err
	}
	if err := r.load(ctx, *load*1000); err != nil {
		return err
	}
	picture, err := r.svg()
	return errors.Join(err, os.WriteFile(filepath.Join(*out, "reads.svg"), picture, 0o644),
		os.WriteFile(filepath.Join(*out, "RESULTS.md"), []byte(r.markdown()), 0o644))
}

// measure stores the spans in each layout and asks the queries.
func (r *results) measure(ctx context.Context, spans int) error {
	d, err := newDataset(ctx, spans)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if r.Spans, r.Day, err = d.spans, d.day, d.scan(ctx, "SELECT version()",
		&r.ClickHouse); err != nil {
		return err
	}
	for _, l := range layouts {
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), l)
		m, err := d.measure(ctx, l)
		if err != nil {
			return fmt.Errorf("%v: %w", l, err)
		}
		r.Measured = append(r.Measured, m)
	}
	return nil
}

// load measures the CPU time to load and merge. All layouts are loaded in turn, so that a busy
// machine slows all of them down alike.
func (r *results) load(ctx context.Context, spans int) error {
	d, err := newDataset(ctx, spans)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	r.LoadSpans = d.spans
	for range rounds {
		var base float64
		for i, l := range layouts {
			seconds, _, err := d.load(ctx, l, block)
			if err != nil {
				return err
			}
			if l == exporter {
				base = seconds
			}
			r.Measured[i].CPU = append(r.Measured[i].CPU, seconds/base)
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
