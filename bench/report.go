package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/randflake/lease/driver"
)

// results are what was measured; sections that were not asked for are empty.
type results struct {
	settings settings
	sections []string
	begun    time.Time
	load     string // when it began
	rivals   []rival
	samples  samples
	seldom   samples
	written  []written
	quiet    quiet
	balance  []balance
	btree    btree
}

func sectionNames() []string { return []string{"ids", "seldom", "lines", "quiet", "balance", "btree"} }

func (r *results) has(section string) bool { return slices.Contains(r.sections, section) }

func gather(ctx context.Context, s settings, sections []string) (r *results, err error) {
	r = &results{settings: s, sections: sections, begun: time.Now(), load: load()}
	if r.rivals, err = rivals(); err != nil {
		return nil, err
	}
	for _, section := range sections {
		fmt.Fprintln(os.Stderr, "bench: measuring", section)
		switch section {
		case "ids":
			r.samples, err = measureIDs(ctx, s, true)
		case "seldom":
			r.seldom, err = measureSeldom(ctx, s)
		case "lines":
			if r.written, err = countWrites(ctx, s); errors.Is(err, errNoStepping) {
				err = nil // and the report says so
			}
		case "quiet":
			r.quiet, err = measureQuiet(ctx, s)
		case "balance":
			r.balance, err = measureBalance(s)
		case "btree":
			r.btree, err = measureBTree(ctx, s)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", section, err)
		}
	}
	return r, nil
}

// spanTurns is how many turns of a span there are for one of others: it leaves
// garbage, and the collector makes turns differ by more than what is looked for.
const spanTurns = 4

// measureIDs measures what has a time: all of it, or what has a target.
func measureIDs(ctx context.Context, s settings, all bool) (m samples, err error) {
	g, err := newGenerators(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, g.close(ctx)) }()
	subjects, err := everySubject(g, all)
	if err != nil {
		return m, err
	}
	m = measure(subjects, s.rounds, s.turn)
	m.addSpans(g, spanTurns*s.rounds, s.turn)
	for _, v := range variants {
		if v == "nolinkname" && !all {
			continue // it has no target
		}
		if err := v.add(ctx, s, m); err != nil {
			return m, err
		}
	}
	return m, nil
}

// everySubject lists counterparts side by side.
func everySubject(g *generators, all bool) ([]subject, error) {
	subjects := g.ids()
	p, err := parts()
	if err != nil {
		return nil, err
	}
	subjects = append(subjects, p...)
	for _, s := range g.crowds() {
		if all || s.gen == "traceflake" {
			subjects = append(subjects, s)
		}
	}
	if all {
		rs, err := rivals()
		if err != nil {
			return nil, err
		}
		subjects = append(append(subjects, g.shared()...), rivalIDs(rs)...)
	}
	return subjects, nil
}

// save writes RESULTS.md, the plots, and results.txt, which git ignores.
func (r *results) save(ctx context.Context) error {
	if err := plotCosts(r.costs()); err != nil {
		return err
	}
	if err := plotCrowd(r.samples); err != nil {
		return err
	}
	if err := plotBalance(r.balance[0]); err != nil {
		return err
	}
	raw, err := os.Create("results.txt")
	if err != nil {
		return err
	}
	if err := errors.Join(r.raw(raw), raw.Close()); err != nil {
		return err
	}
	text, err := r.markdown(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile("RESULTS.md", []byte(text), 0o644)
}

// raw writes the samples as Go's benchmarks write theirs.
func (r *results) raw(w io.Writer) error {
	_, err := fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/traceflake/traceflake/bench\ncpu: %s\n", runtime.GOOS, runtime.GOARCH, cpuName())
	return errors.Join(err, r.samples.write(w))
}

func (r *results) markdown(ctx context.Context) (string, error) {
	var b strings.Builder
	head, err := r.head(ctx)
	if err != nil {
		return "", err
	}
	b.WriteString(head)
	if r.has("ids") {
		ls, err := lines(r.samples)
		if err != nil {
			return "", err
		}
		if r.has("quiet") {
			ls = append(ls, r.quiet.lines()...)
		}
		section(&b, "Ratios", `The table that `+"`make bench-check`"+` holds against its targets. Costs are medians of wall time; a ratio is the median
of the ratios of neighbouring turns, the next column the same of the process's CPU time (user and system, all threads).
Allocations are those of a million calls, then the counterpart's; more than `+fmt.Sprint(freeAllocs)+` further ones, or `+fmt.Sprint(freeBytes)+` byte a call, are a
miss: a turn sees the runtime's own, too. `+leasedNote()+`
`, table(ls), spanNoise(r.samples))
		section(&b, "Rivals", `One call, one goroutine, medians. NewIDs makes a trace ID and a span ID; the others make one ID. bwmarrin/snowflake
spins and sony/sonyflake sleeps when it is asked for more IDs than its sequence has: their wall time is their limit.
`, r.rivalTable(), "![Cost of an ID](plots/cost.svg)\n")
		section(&b, "Variants", `One goroutine, medians; each but the first in a process of its own. Next encrypts a single block, which is portable code
everywhere. Beside NewIDs and NewSpanID is their ratio to the SDK's default generator. Everything else in this file that
makes IDs uses `+fastest()+`.
`, variantTable(r.samples))
		section(&b, "Goroutines", `Million calls a second, medians; GOMAXPROCS is `+fmt.Sprint(runtime.GOMAXPROCS(0))+`.
`, r.crowdTable(), "![Throughput against goroutines](plots/goroutines.svg)\n")
		section(&b, "The one shared word", `NewIDs counts up one word that all CPUs share, which keeps a process's trace IDs in strict order. Time per call with
GOMAXPROCS goroutines on one generator, and with one generator for each; and an atomic addition alone, likewise.
`, sharedReport(r.samples))
	}
	if r.has("seldom") {
		section(&b, "Now and then", seldomReport(r.seldom))
	}
	if r.has("lines") {
		section(&b, "Cache lines", writtenReport(r.written))
	}
	if r.has("quiet") {
		section(&b, "Idle cost and memory", r.quiet.report())
	}
	if r.has("balance") {
		section(&b, "Balance", balanceReport(r.balance))
	}
	if r.has("btree") {
		section(&b, "B-tree keys", r.btree.report())
	}
	if r.has("ids") {
		stat, err := r.benchstat(ctx)
		if err != nil {
			return "", err
		}
		section(&b, "benchstat", fmt.Sprintf("n = %d, of spans %d", r.settings.rounds, spanTurns*r.settings.rounds)+". sec/op is wall time; results.txt, which is written beside this file, has CPU time and allocations, too. Draw is one random number.\n", stat)
	}
	return strings.TrimRight(b.String(), "\n") + "\n", nil
}

// command is how this program was started, `go run .` like make bench.
func command() string { return strings.Join(append([]string{"go", "run", "."}, os.Args[1:]...), " ") }

func section(b *strings.Builder, title string, parts ...string) {
	b.WriteString("\n## " + title + "\n\n" + strings.Join(parts, "\n"))
}

func (r *results) head(ctx context.Context) (string, error) {
	commit, err := gitCommit(ctx)
	if err != nil {
		return "", err
	}
	s := r.settings
	rows := [][]string{
		{"CPU", fmt.Sprintf("%s, %d in use", cpuName(), runtime.GOMAXPROCS(0))},
		{"system", system(ctx)},
		{"Go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{"commit", commit},
		{"command", fmt.Sprintf("`%s` in bench: %d rounds, turns of %v, idle for %v, %d rows, %d IDs for the balance", command(), s.rounds, s.turn, s.idle, s.rows, s.ids)},
		{"when", fmt.Sprintf("%s to %s", r.begun.UTC().Format("2006-01-02 15:04"), time.Now().UTC().Format("15:04 MST"))},
		{"load average", fmt.Sprintf("%s before, %s after", r.load, load())},
	}
	return "# Measurements\n\nWritten by `make bench`; nothing here is by hand.\n\n" + markdown(append([][]string{{"", ""}}, rows...)), nil
}

// named are the generators of the SDK's interface in the table of rivals.
var named = []rival{
	{gen: "traceflake", who: "traceflake, zero configuration", unique: "never twice in a process; between processes by chance: 64 bits for a millisecond and sequence", ordered: "strictly in a process", hidden: "low 64 bits", bits: "128 + 64", decodes: "millisecond, sequence; with the secret second, node, sequence"},
	{gen: "leased", who: "traceflake, leased nodes", unique: "never twice in a fleet: by lease", ordered: "strictly in a process", hidden: "low 64 bits", bits: "128 + 64", decodes: "the same"},
	{gen: "default", who: "OpenTelemetry SDK's default", unique: "by chance: 128 random bits", ordered: "no", hidden: "all", bits: "128 + 64", decodes: "nothing"},
	{gen: "xray", who: "contrib's X-Ray generator", unique: "by chance: 96 random bits a second", ordered: "seconds", hidden: "all but the time", bits: "128 + 64", decodes: "second"},
	{gen: "uptrace", who: "uptrace-go", unique: "by chance: 64 bits of math/rand a nanosecond", ordered: "nanoseconds", hidden: "nothing: math/rand can be computed from its output", bits: "128 + 64", decodes: "nanosecond"},
}

func (r *results) rivalTable() string {
	rows := [][]string{{"generator", "unique", "sorts by time", "hidden", "bits", "decodes to", "ns", "CPU ns", "allocations"}}
	add := func(v rival, k string) {
		rows = append(rows, []string{v.who, v.unique, v.ordered, v.hidden, v.bits, v.decodes,
			short(r.samples.median(k, sample.wallNs)), short(r.samples.median(k, sample.cpuNs)), fmt.Sprintf("%.2f", r.samples.median(k, sample.allocations))})
	}
	for _, v := range named {
		add(v, key("NewIDs", v.gen, 1))
	}
	for _, v := range r.rivals {
		add(v, key("ID", v.gen, 1))
	}
	return markdown(rows)
}

func (r *results) costs() (points []costPoint) {
	add := func(label, k string, mine bool) {
		points = append(points, costPoint{label, r.samples.median(k, sample.wallNs), mine})
	}
	add("traceflake NewSpanID", key("NewSpanID", "traceflake", 1), true)
	add("SDK default NewSpanID", key("NewSpanID", "default", 1), false)
	for _, v := range named {
		add(map[string]string{"traceflake": "traceflake", "leased": "traceflake leased", "default": "SDK default", "xray": "X-Ray", "uptrace": "uptrace-go"}[v.gen]+" NewIDs",
			key("NewIDs", v.gen, 1), v.gen == "traceflake" || v.gen == "leased")
	}
	add("randflake Next", key("Next", "randflake", 1), true)
	for _, v := range r.rivals {
		add(v.who, key("ID", v.gen, 1), false)
	}
	return points
}

func (r *results) crowdTable() string {
	rows := [][]string{{""}}
	for _, n := range crowd {
		rows[0] = append(rows[0], fmt.Sprint(n))
	}
	for _, c := range []struct{ name, gen string }{
		{"NewIDs", "traceflake"}, {"NewIDs", "default"}, {"NewIDs", "xray"}, {"NewSpanID", "traceflake"}, {"NewSpanID", "default"},
	} {
		row := []string{c.name + " " + c.gen}
		for _, n := range crowd {
			row = append(row, fmt.Sprintf("%.1f", 1e3/r.samples.median(key("Crowd"+c.name, c.gen, n), sample.wallNs)))
		}
		rows = append(rows, row)
	}
	return markdown(rows)
}

// spanNoise says what a ratio of spans is when there is no difference.
func spanNoise(m samples) string {
	var itself []string
	for _, name := range []string{"RootSpanNever", "RootSpanAlways", "ChildSpanNever", "ChildSpanAlways"} {
		itself = append(itself, fmt.Sprintf("%.2f", m.ratio(key(name, "again", 1), key(name, "default", 1), sample.wallNs)))
	}
	return "The same ratios of spans with the default generator against itself: " + strings.Join(itself, ", ") + ".\n"
}

// leasedNote says what the leased figures do not show.
func leasedNote() string {
	const node = randflake.MaxSequence + 1
	return fmt.Sprintf(`The leased source has one block of all %d nodes; one of
the default size, %d nodes, ends at %d IDs a second (a NewIDs takes two), far less than a turn asks for. A process that
makes more takes further blocks, up to four by default, and past them the fallback answers.`,
		randflake.MaxNode+1, driver.DefaultBlockSize, driver.DefaultBlockSize*node)
}

// sharedReport holds the cost of strict order against what the targets leave.
func sharedReport(m samples) string {
	n := runtime.GOMAXPROCS(0)
	rows := [][]string{{"", "shared", "one for each", "ratio"}}
	for _, c := range []struct{ name, what string }{
		{"SharedNewIDs", "NewIDs"}, {"SharedNewSpanID", "NewSpanID, which has no such word"},
		{"SharedDefaultAdd", "the SDK's default NewIDs, and an atomic addition"}, {"SharedAdd", "an atomic addition"},
	} {
		shared, own := key(c.name, "shared", n), key(c.name, "own", n)
		rows = append(rows, []string{c.what, short(m.median(shared, sample.wallNs)) + " ns", short(m.median(own, sample.wallNs)) + " ns",
			fmt.Sprintf("%.2f", m.ratio(shared, own, sample.wallNs))})
	}
	floor := key("SharedAdd", "shared", n)
	add, own := m.median(floor, sample.wallNs), m.median(key("SharedNewIDs", "own", n), sample.wallNs)
	text := fmt.Sprintf(`
The bare addition to a shared word, %.1f ns a call, is the floor for any generator that keeps strict order in a process:
more CPUs make it no faster. With %d goroutines the targets leave, for the word and everything else:

`, add, n)
	left := [][]string{{"NewIDs at most", "ns a call", "less the floor", "NewIDs, one generator for each", "NewIDs, shared"}}
	for _, t := range []struct {
		what, gen string
		most      float64
	}{{"the SDK's default", "default", 1}, {"X-Ray's", "xray", 0.3}} {
		most := t.most * m.median(key("NewIDs", t.gen, n), sample.wallNs)
		left = append(left, []string{fmt.Sprintf("%.1f of %s", t.most, t.what), fmt.Sprintf("%.1f", most), fmt.Sprintf("%.1f", most-add),
			fmt.Sprintf("%.1f", own), fmt.Sprintf("%.1f", m.median(key("SharedNewIDs", "shared", n), sample.wallNs))})
	}
	text += markdown(left)
	if crowded := m.crowded(floor, key("SharedNewIDs", "shared", n)); crowded != "" {
		text += "\nBut here: " + crowded + ", so that no word was contended.\n"
	}
	return markdown(rows) + text
}

// statTable is a table of benchstat's.
type statTable struct{ title, filter, row, col string }

// benchstat is what golang.org/x/perf's benchstat makes of the samples.
func (r *results) benchstat(ctx context.Context) (string, error) {
	file, err := os.CreateTemp("", "traceflake-bench-*.txt")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := errors.Join(r.raw(file), file.Close()); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, t := range []statTable{
		{"Generators", ".name:(NewIDs OR NewSpanID) -/gen:/-/", ".name,/goroutines", "/gen@(default traceflake leased xray uptrace)"},
		variant("avx2").benchstat(),
		variant("purego").benchstat(),
		variant("nolinkname").benchstat(),
		{"Parts, per ID or block", ".name:(Draw OR EncryptUint64s OR Fill OR Next)", ".name,/gen", ".unit"},
		{"Spans", ".name:/Span(Never|Always)/", ".name", "/gen@(default traceflake again)"},
		{"One ID", ".name:ID", "/gen", ".unit"},
		{"Goroutines", ".name:/Crowd/", ".name,/goroutines", "/gen@(default traceflake xray)"},
		{"Shared or one for each", ".name:/Shared/", ".name", "/gen@(own shared)"},
	} {
		args := []string{"tool", "benchstat", "-filter", t.filter + " .unit:sec/op", "-row", t.row}
		if t.col != ".unit" {
			args = append(args, "-col", t.col)
		}
		out, err := output(exec.CommandContext(ctx, "go", append(args, file.Name())...))
		if err != nil {
			return "", fmt.Errorf("benchstat: %w", err)
		}
		text := strings.ReplaceAll(string(out), file.Name(), "results.txt")
		if _, below, ok := strings.Cut(text, "cpu: "+cpuName()+"\n"); ok {
			text = below // the head of this file says the same
		}
		if strings.TrimSpace(text) == "" {
			return "", fmt.Errorf("benchstat has nothing on %s", t.title)
		}
		fmt.Fprintf(&b, "%s\n\n```\n%s\n```\n\n", t.title, strings.Trim(text, "\n"))
	}
	return b.String(), nil
}

func gitCommit(ctx context.Context) (string, error) {
	commit, err := output(exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD"))
	if err != nil {
		return "", fmt.Errorf("git: %w", err)
	}
	// What is written here does not count, nor what nobody added.
	changes, err := output(exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no", "--", ":/", ":!RESULTS.md", ":!plots"))
	if err != nil {
		return "", fmt.Errorf("git: %w", err)
	}
	text := strings.TrimSpace(string(commit))
	if n := strings.Count(string(changes), "\n"); n > 0 {
		text += fmt.Sprintf(" and %d changed files", n)
	}
	return text, nil
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

// load is the load average of the last minute; it says who else was there.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
