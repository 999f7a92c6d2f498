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

	"github.com/traceflake/traceflake/bench/btree"
	"github.com/traceflake/traceflake/bench/builds"
	"github.com/traceflake/traceflake/bench/idle"
	"github.com/traceflake/traceflake/bench/internal/child"
	"github.com/traceflake/traceflake/bench/internal/text"
	"github.com/traceflake/traceflake/bench/pruning"
	"github.com/traceflake/traceflake/bench/rates"
	"github.com/traceflake/traceflake/bench/rivals"
	"github.com/traceflake/traceflake/bench/sharing"
	"github.com/traceflake/traceflake/bench/spans"
)

// results holds the measured results as text.
type results struct {
	head     string
	figures  figures
	sections []section
}

type section struct{ name, title, text string }

// measurement is a section of the report and how to measure it.
type measurement struct {
	name, title string
	measure     func(ctx context.Context, p plan, f *figures) (string, error)
}

func measurements() []measurement {
	progress := os.Stderr
	return []measurement{
		{"rates", "Cost against rate", func(ctx context.Context, p plan, f *figures) (_ string, err error) {
			f.rates, err = rates.Measure(ctx, progress, false, p.rounds)
			return f.rates.Report(), err
		}},
		{"spans", "Whole spans", func(ctx context.Context, p plan, f *figures) (_ string, err error) {
			f.spans, err = spans.Measure(ctx, progress, p.rounds)
			return f.spans.Report(), err
		}},
		{"sharing", "Shared lines", func(ctx context.Context, p plan, f *figures) (_ string, err error) {
			f.sharing, err = sharing.Measure(ctx, p.stops)
			return f.sharing.Report(), err
		}},
		{"idle", "Beside the IDs", func(ctx context.Context, p plan, f *figures) (_ string, err error) {
			f.idle, err = idle.Measure(ctx, progress, p.part)
			return f.idle.Report(), err
		}},
		{"builds", "What can be left out", func(ctx context.Context, p plan, _ *figures) (string, error) {
			all, err := builds.Measure(ctx, progress, p.rounds)
			return builds.Report(all), err
		}},
		{"rivals", "Rivals", func(ctx context.Context, p plan, _ *figures) (string, error) {
			costs, err := rivals.Measure(ctx, progress, p.rounds)
			return rivals.Report(costs), err
		}},
		{"btree", "B-tree keys", func(ctx context.Context, p plan, _ *figures) (string, error) {
			costs, err := btree.Measure(ctx, progress, p.rows)
			if err != nil {
				return "", err
			}
			return costs.Report(), nil
		}},
		{"pruning", "Blocks left out", func(ctx context.Context, p plan, f *figures) (_ string, err error) {
			engine, err := filepath.Abs("../.cache/duckdb")
			if err != nil {
				return "", err
			}
			f.pruning, err = pruning.Measure(ctx, progress, engine, p.spans)
			return f.pruning.Report(), err
		}},
	}
}

func sectionNames() (names []string) {
	for _, m := range measurements() {
		names = append(names, m.name)
	}
	return names
}

// gather measures the named sections.
func gather(ctx context.Context, p plan, names []string) (*results, error) {
	began, before := time.Now(), load()
	r := new(results)
	for _, m := range measurements() {
		if !slices.Contains(names, m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %v: %s\n", time.Since(began).Round(time.Second), m.name)
		report, err := m.measure(ctx, p, &r.figures)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		r.sections = append(r.sections, section{m.name, m.title, report})
	}
	var err error
	r.head, err = head(ctx, began, before)
	return r, err
}

// save writes RESULTS.md and the plots.
func (r *results) save() error {
	if err := os.MkdirAll("plots", 0o755); err != nil {
		return err
	}
	if err := r.figures.rates.Plot("plots/cost.svg"); err != nil {
		return err
	}
	if err := r.figures.pruning.Plot("plots/pruning.svg"); err != nil {
		return err
	}
	return os.WriteFile("RESULTS.md", []byte(r.markdown()), 0o644)
}

func (r *results) markdown() string {
	var b strings.Builder
	b.WriteString(r.head)
	if f := r.figures; f.rates != nil && f.spans != nil && f.idle != nil {
		section{title: "Targets", text: `The targets that ` + "`make bench-check`" + ` checks. Ratios are medians over alternating turns of bare loops over
sdktrace.IDGenerator, against the SDK's default generator. Noise is how far the default's interval extends when it is
compared with itself in the same turns. A target is missed only by more than the noise; if the noise is large, a figure
near its target does not count.

` + table(lines(f))}.write(&b)
	}
	for _, s := range r.sections {
		s.write(&b)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (s section) write(b *strings.Builder) {
	b.WriteString("\n## " + s.title + "\n\n" + s.text)
}

// head describes what was measured, where and how.
func head(ctx context.Context, began time.Time, before string) (string, error) {
	commit, err := gitCommit(ctx)
	if err != nil {
		return "", err
	}
	rows := [][]string{
		{"", ""},
		{"CPU", fmt.Sprintf("%s, %d in use; the cipher uses %s", cpuName(), runtime.GOMAXPROCS(0), builds.Cipher())},
		{"system", system(ctx)},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{"commit", commit},
		{"command", "`" + strings.Join(append([]string{"go", "run", "."}, os.Args[1:]...), " ") + "` in bench"},
		{"when", fmt.Sprintf("%s to %s", began.UTC().Format("2006-01-02 15:04"), time.Now().UTC().Format("15:04 MST"))},
		{"load average", fmt.Sprintf("%s before, %s after", before, load())},
	}
	return "# Measurements\n\nWritten by `make bench`; not edited by hand.\n\n" + text.Table(rows), nil
}

func gitCommit(ctx context.Context) (string, error) {
	commit, err := child.Output(exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD"))
	if err != nil {
		return "", fmt.Errorf("git: %w", err)
	}
	// Files written by this program do not count, nor do untracked files.
	changes, err := child.Output(exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no", "--", ":/", ":!RESULTS.md", ":!plots"))
	if err != nil {
		return "", fmt.Errorf("git: %w", err)
	}
	id := strings.TrimSpace(string(commit))
	if n := strings.Count(string(changes), "\n"); n > 0 {
		id += fmt.Sprintf(" and %d changed files", n)
	}
	return id, nil
}

func cpuName() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if k, v, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

// system is the kernel and its release.
func system(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "uname", "-sr").Output()
	if err != nil {
		return runtime.GOOS
	}
	return strings.TrimSpace(string(out))
}

// load returns the load average of the last minute, which shows other load.
func load() string {
	all, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(all), " ")
	return first
}
