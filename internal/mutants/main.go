// Command mutants finds mistakes that the tests would miss. It makes many small changes to a
// package, one at a time, and runs the tests that reach the changed line: one of them must fail
// for each change.
//
// All changes to a package are built into one test binary; an environment variable activates one
// of them. So a mutant costs a run, not a build. A first run of each test records which changes it
// reaches and how long it takes; each mutant is then tried with the fastest of its tests first.
//
// It writes only its results, in .cache/mutants. After an interruption the next run continues from
// there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is a package to change, and the packages whose tests must notice.
type target struct {
	dir   string
	tests []string // directories; if empty, the package itself
	text  bool     // mutate constant text too
}

var targets = []target{
	{dir: "sparx64"},
	{dir: "randflake"},
	{dir: "lease"},
	{dir: "lease/internal/owner"},
	{dir: "lease/driver", tests: []string{
		"lease/driver", "lease/leasetest", "lease/boltstore"}},
	{dir: "traceid"},
	{dir: "idgen"},
	{dir: "internal/vmclock"},
	{dir: "lease/boltstore", tests: []string{
		"lease/boltstore", "setup", "integration/lease/boltstore"}},
	{dir: "propagation/xtraceid", text: true},
	{dir: "setup", text: true},
	{dir: "clickhouse", text: true},
	{dir: "clickhouse/internal/ddl", tests: []string{"clickhouse"}, text: true},
	{dir: "lease/etcdstore", tests: []string{"integration/lease/etcdstore"}, text: true},
	{dir: "lease/k8sstore", text: true},
	{dir: "lease/pgstore", tests: []string{"integration/lease/pgstore"}, text: true},
	{dir: "lease/s3store", tests: []string{"integration/lease/s3store"}, text: true},
}

// flags are extra flags for a package's tests. The simulator finds what it can find within its
// first seeds; more seeds cost minutes for each survivor.
var flags = map[string][]string{"lease": {"-seeds=20"}}

// list is the file that lists survivors, each with a reason.
const list = "docs/testing.md"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	only := flag.String("only", "", "comma-separated `directories` of packages (default all)")
	limit := flag.Duration("for", 0, "stop after this time; the next run continues")
	grown := flag.Bool("grown", false, "tests were only added since the last run: do not try killed mutants again")
	match := flag.String("match", "", "try only mutants whose name contains this text, and show the output")
	workers := flag.Int("parallel", 2, "try this many mutants at once")
	slow := flag.Duration("slow", time.Minute, "leave out tests that take longer, for a quick first run")
	table := flag.Bool("named", false, "try the named mutants instead of the generated ones")
	flag.Parse()
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
		return fmt.Errorf("run it in the root of the repository: %w", err)
	}
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	if *table {
		return tryNamed(ctx, root, *match)
	}
	chosen := targets
	if *only != "" {
		names := strings.Split(*only, ",")
		chosen = slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return !slices.Contains(names, t.dir) })
		if len(chosen) != len(names) {
			return fmt.Errorf("-only %s: not all of these are targets", *only)
		}
	}
	listed, err := os.ReadFile(filepath.Join(root, list))
	if err != nil {
		return err
	}
	var total score
	for _, t := range chosen {
		s, err := t.try(ctx, root, trial{workers: *workers, slow: *slow, grown: *grown, match: *match, listed: string(listed)})
		total.add(s)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", t.dir, err), unfinished(ctx))
		}
	}
	fmt.Printf("\n%-34s %s\n", "all", total)
	switch {
	case ctx.Err() != nil:
		return unfinished(ctx)
	case total.unlisted > 0:
		return fmt.Errorf("%d survivors are not in %s", total.unlisted, list)
	}
	return nil
}

func unfinished(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return errors.New("not finished; run it again to continue")
}

// score counts mutants.
type score struct {
	killed, survived, listed, unlisted int
	took                               time.Duration
}

func (s *score) add(o score) {
	s.killed += o.killed
	s.survived += o.survived
	s.listed += o.listed
	s.unlisted += o.unlisted
	s.took += o.took
}

func (s score) String() string {
	all := max(s.killed+s.survived, 1)
	return fmt.Sprintf("%4d of %4d killed, %5.1f %%; %3d survivors listed, %3d not; %s",
		s.killed, s.killed+s.survived, 100*float64(s.killed)/float64(all), s.listed, s.unlisted, s.took.Round(time.Second))
}
