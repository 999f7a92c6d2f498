package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/integration/servers"
)

// results are everything measured, and where.
type results struct {
	Date, CPU, Go, ClickHouse, Commit, Command string
	Measured                                   []measured
}

func newResults(ctx context.Context, e *servers.Engine, o options) (results, error) {
	r := results{
		Date:    time.Now().UTC().Format("2006-01-02"),
		CPU:     fmt.Sprintf("%s, %d cores, %s/%s", cpuName(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		Go:      runtime.Version(),
		Command: "make bench-clickhouse ARGS=\"-spans " + strings.Trim(strings.ReplaceAll(fmt.Sprint(o.sizes), " ", ","), "[]") + fmt.Sprintf(" -seed %d\"", o.seed),
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	r.Commit = strings.TrimSpace(string(commit))
	if err != nil {
		r.Commit = "unknown"
	}
	_, err = scan(ctx, e, "SELECT version()", &r.ClickHouse)
	return r, err
}

func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}

// add takes measurements in, each in the place of the same one of before.
func (r *results) add(all []measured) {
	for _, m := range all {
		same := func(old measured) bool {
			return old.Spans == m.Spans && old.Layout == m.Layout && old.IDs == m.IDs && old.About == m.About
		}
		if i := slices.IndexFunc(r.Measured, same); i >= 0 {
			r.Measured[i] = m
		} else {
			r.Measured = append(r.Measured, m)
		}
	}
}

// at are the layouts of one size.
func (r results) at(spans int) (all []measured) {
	for _, m := range r.Measured {
		if m.Spans == spans {
			all = append(all, m)
		}
	}
	return all
}

func (r results) sizes() (sizes []int) {
	for _, m := range r.Measured {
		sizes = append(sizes, m.Spans)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func (r results) write(folder string) error {
	f, err := os.Create(filepath.Join(folder, "RESULTS.md"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w := bufio.NewWriter(f)
	fmt.Fprintf(w, `# What the order of trace IDs is worth in ClickHouse

Written by `+"`%s`"+` on %s, commit %s, %s, ClickHouse %s on %s.

One day of generated spans, about 8 to a trace, inserted in the order of their times in blocks of %d, two at a time. "Fresh" is
right after that, "merged" after OPTIMIZE FINAL. Rows, bytes (of these rows, uncompressed) and disk (bytes from files: compressed columns, marks and indexes) are
what ClickHouse counted in system.events while a query ran with its caches empty: medians of %d queries of each kind,
or of as many, at least two, as begin within %v.
"100 traces" are from all of the window. "All traces" are those whose ID's time is in it; with random IDs that is the next, "all spans" that
began in it: one span in 1000 is up to 20 minutes late, so there the table sorted by ID is read from 20 minutes before. "Newest" goes back from a time of the day; the exporter's
table is asked for its newest root spans. Searches list the newest %d spans of one service and name.
Times are of merged tables and the first %d of these queries, or fewer likewise: cold with ClickHouse's caches empty and the kernel's full, then warm, each up to %d times within %v; busy is while %d spans come in every %v.
Rows and bytes carry over to other machines; times do not.

`, r.Command, r.Date, r.Commit, r.Go, r.ClickHouse, r.CPU, block, samples, patience, page, timed, runs, budget, busySpans, busyInterval)
	for _, spans := range r.sizes() {
		all := r.at(spans)
		fmt.Fprintf(w, "## %.1f million spans\n\n", float64(spans)/1e6)
		table(w, "### Thousands of rows read, fresh / merged", all, func(m measured, kind string) string {
			return fmt.Sprintf("%.1f / %.1f", m.Fresh[kind].Rows/1e3, m.Merged[kind].Rows/1e3)
		})
		table(w, "### Kilobytes read, uncompressed, fresh / merged", all, func(m measured, kind string) string {
			return fmt.Sprintf("%.0f / %.0f", m.Fresh[kind].Bytes/1e3, m.Merged[kind].Bytes/1e3)
		})
		table(w, "### Kilobytes read from disk, fresh / merged", all, func(m measured, kind string) string {
			return fmt.Sprintf("%.0f / %.0f", m.Fresh[kind].Disk/1e3, m.Merged[kind].Disk/1e3)
		})
		withTimes := slices.DeleteFunc(slices.Clone(all), func(m measured) bool { return m.Times == nil })
		table(w, "### Milliseconds: cold, warm median and 99th percentile, busy median and 99th percentile", withTimes, func(m measured, kind string) string {
			t := m.Times[kind]
			return fmt.Sprintf("%.0f, %.0f %.0f, %.0f %.0f", t.Cold, t.Warm, t.Warm99, t.Busy, t.Busy99)
		})
		fmt.Fprint(w, "### Disk, bytes a span, and cost of storing\n\n"+
			"| layout | IDs | all | TraceId | attributes | skip indexes | projection | lookup table | parts | CPU s to load | to merge | wall s |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
		for i, m := range all {
			if i > 0 && m.Load == all[i-1].Load { // another way to ask the same table
				continue
			}
			b := m.Bytes
			fmt.Fprintf(w, "| %s: %s | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %d → %d | %.0f | %.0f | %.0f |\n", m.Layout, m.About, m.IDs,
				b["all"], b["TraceId"], b["attributes"], b["indexes"], b["projection"], b["lookup"], m.Parts, m.MergedParts, m.Load, m.Merge, m.Wall)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "![rows read, random against ours](rows.svg)\n")
	if len(r.sizes()) > 1 {
		fmt.Fprint(w, "\n![rows against the number of spans](growth.svg)\n")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return r.plots(folder)
}

func table(w *bufio.Writer, title string, all []measured, cell func(measured, string) string) {
	fmt.Fprintf(w, "%s\n\n| layout | IDs | %s |\n|---|---|%s\n", title, strings.Join(kinds, " | "), strings.Repeat("---|", len(kinds)))
	for _, m := range all {
		fmt.Fprintf(w, "| %s: %s | %s |", m.Layout, m.About, m.IDs)
		for _, kind := range kinds {
			fmt.Fprintf(w, " %s |", cell(m, kind))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}
