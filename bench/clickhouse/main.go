// Command clickhouse measures what the order of trace IDs saves: it stores the
// same generated spans in several layouts and with several kinds of IDs, runs the
// queries of a trace page, and counts what ClickHouse actually read.
//
//	make bench-clickhouse
//
// writes RESULTS.md, results.json and the plots. Rows and bytes carry over to other
// machines; times do not.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/traceflake/traceflake/integration/servers"
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

type options struct {
	sizes  []int // millions of spans, ascending
	seed   int
	out    string
	layout string // "" is all
	report bool
}

// mostOfAll is the largest size, in millions of spans, at which all layouts are
// measured and not the main ones only.
const mostOfAll = 5

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("bench/clickhouse", flag.ContinueOnError)
	sizes := flags.String("spans", "5,20", "sizes to measure, in `millions` of spans, ascending; only the first, and none above 5, with all layouts")
	flags.IntVar(&o.seed, "seed", 1, "`number` that all data follows from")
	flags.StringVar(&o.out, "out", ".", "`folder` for the results")
	flags.StringVar(&o.layout, "layout", "", "measure only layouts of this `name` and keep the other results in results.json")
	flags.BoolVar(&o.report, "report", false, "only write RESULTS.md and the plots again, from results.json")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: there are only flags, see -h", flags.Arg(0))
	}
	for field := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || n > 1000 || len(o.sizes) > 0 && n <= o.sizes[len(o.sizes)-1] {
			return o, fmt.Errorf("-spans %s: give ascending whole millions, 1 to 1000", *sizes)
		}
		o.sizes = append(o.sizes, n)
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	file := filepath.Join(o.out, "results.json")
	var r results
	if o.report || o.layout != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if o.report {
		return r.write(o.out)
	}
	e, err := servers.ClickHouse(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	now, err := newResults(ctx, e, o)
	if err != nil {
		return err
	}
	if o.layout == "" {
		r = now
	} else {
		r.Commit += fmt.Sprintf(", %s again at %s", o.layout, now.Commit)
	}
	for i, millions := range o.sizes {
		d, err := newDataset(ctx, e, millions*1_000_000, o.seed, newBar(os.Stderr, fmt.Sprintf("generate %d M spans", millions)))
		if err != nil {
			return err
		}
		for _, l := range layouts {
			if o.layout != "" && l.Name != o.layout {
				continue
			}
			if (i > 0 || millions > mostOfAll) && !l.main {
				continue
			}
			m, err := d.run(ctx, l, os.Stderr)
			if err != nil {
				return err
			}
			r.add(m)
			// What is measured is kept, should a later step fail.
			text, err := json.MarshalIndent(r, "", "\t")
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
				return err
			}
		}
	}
	return r.write(o.out)
}
