// Command clickhouse compares layouts of a table of spans. It stores the same generated spans in
// each, with a share of random trace IDs, and counts what ClickHouse uses. It has three modes:
//
//	make bench-clickhouse        rows and bytes that queries read: RESULTS.md
//	make bench-clickhouse-cpu    CPU time to load and merge, disk and memory: CPU.md
//	make bench-clickhouse-scale  bytes that lookups by ID read as tables grow: SCALE.md
//
// Rows and bytes carry over to other machines; of CPU time only the ratios do.
//
// layouts.go has the tables that are compared, store.go a database with one of them, source.go the
// spans, and questions.go the queries. Each mode has a file: reads.go, cpu.go and scale.go.
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
	"strconv"
	"strings"
	"time"
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

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench/clickhouse", flag.ContinueOnError)
	spans := flags.Int("spans", 2500, "`thousands` of spans, 60 % of them on the day that is "+
		"queried and the rest on the two days before")
	cpu := flags.Bool("cpu", false, "measure CPU time, disk and memory, and write CPU.md")
	names := flags.String("layouts", "exporter;ours", "`names` of layouts for -cpu and -scale; "+
		"the first is exporter")
	random := flags.String("random", "0,50,100", "shares of random IDs for -cpu and -scale, in "+
		"`percent`")
	sizesOf := flags.String("blocks", "100000,10000,1000", "`spans` of the blocks for -cpu")
	scale := flags.String("scale", "", "measure lookups in tables that grow by so many "+
		"`thousands` of spans a day, as in 1000,4000, and write SCALE.md")
	days := flags.String("days", "1,4,16", "`days` after which -scale measures")
	unmerged := flags.String("unmerged", "", "shares of random IDs for which -scale also measures "+
		"unmerged tables, in `percent`")
	out := flags.String("out", ".", "`folder` for the results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := named(*names)
	if err != nil {
		return err
	}
	head, err := heading(ctx, args)
	if err != nil {
		return err
	}
	write := func(name, text string) error {
		return os.WriteFile(filepath.Join(*out, name), []byte(text), 0o644)
	}
	shares, err1 := numbers(*random)
	blocks, err2 := numbers(*sizesOf)
	rates, err3 := numbers(*scale)
	at, err4 := numbers(*days)
	late, err5 := numbers(*unmerged)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	switch {
	case *cpu:
		results, err := loading(ctx, *spans*1000, all, shares, blocks)
		return errors.Join(err, write("CPU.md", cpuPage(head, results)))
	case *scale != "":
		var results []scaled
		for _, g := range growths(rates, shares, late, at) {
			r, err := g.measure(ctx, all)
			if err != nil {
				return fmt.Errorf("%s: %w", g.text(0), err)
			}
			results = append(results, r...)
			if err := write("SCALE.md", scalePage(head, all, results)); err != nil {
				return err
			}
		}
		return nil
	}
	results, err := readAll(ctx, *spans*1000)
	if err != nil {
		return err
	}
	picture, err := results.svg()
	return errors.Join(err, write("reads.svg", string(picture)),
		write("RESULTS.md", results.page(head)))
}

// heading returns a sentence on what was run, when and where.
func heading(ctx context.Context, args []string) (string, error) {
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "", fmt.Errorf("the results show the commit: %w", err)
	}
	s, err := open(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	var version, busy string
	err = s.scan(ctx, "SELECT version()", &version)
	text, _ := os.ReadFile("/proc/loadavg")
	busy, _, _ = strings.Cut(string(text), " ")
	return fmt.Sprintf("%s, `go run ./bench/clickhouse %s`, ClickHouse %s, %s, %d cores, load "+
		"average %s at the start; commit %s.", time.Now().UTC().Format(time.DateOnly),
		strings.Join(args, " "), version, processor(), runtime.NumCPU(), busy,
		strings.TrimSpace(string(commit))), err
}

// processor returns the processor's name, family and model, which together show its generation.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	field := func(name string) string {
		_, value, _ := strings.Cut(string(text), "\n"+name+"\t")
		value, _, _ = strings.Cut(value, "\n")
		return strings.TrimSpace(strings.TrimLeft(value, "\t: "))
	}
	return cmp.Or(field("model name"), "unknown CPU") + " family " + field("cpu family") +
		" model " + field("model\t")
}

func numbers(text string) (all []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("%q: numbers are separated by commas", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// progress prints what is done, or found.
func progress(format string, args ...any) {
	fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
