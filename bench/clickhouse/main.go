// Command clickhouse compares tables of spans: it stores the same generated spans in each, and
// counts what ClickHouse uses.
//
//	cd bench/clickhouse && go run . reads layouts unmerged age cpu cpu cpu
//
// measures the tables of plan.json with these modes in turn, keeps the figures in figures.json, and
// draws the pages of pages again, which name the machine; without arguments it only draws them.
// "reads:100:25" are those of 100 million spans a day and 25 services. Bytes and rows carry over to
// other machines; of CPU time only the ratios do. Each "cpu" adds a round to those that are there.
//
// layouts has the tables of others, spans.sql the spans, and queries.sql the queries.
package main

import (
	"context"
	_ "embed" // the plan
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
)

// table is a table that is measured.
type table struct {
	Mode     string  // reads, layouts, unmerged, age or cpu
	Rate     float64 // million spans a day
	Hours    float64 // of spans
	Services int
	Layout   string // ours, ours-…, or files of layouts with a + between them
	Random   int    // percent of the IDs
}

// figure holds what was measured of a table.
type figure struct {
	table
	Commit string
	Values []value   `json:",omitempty"`
	CPU    []float64 `json:",omitempty"` // seconds for a million spans, of each round
}

// value is one measured value.
type value struct {
	Name   string
	N      float64 // megabytes
	Rows   float64 `json:",omitempty"` // thousands that were read
	Answer string  `json:",omitempty"` // a hash of the rows that the query returned
}

//go:embed plan.json
var plan []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal("bench/clickhouse: ", err)
	}
}

func run(ctx context.Context, modes []string) error {
	const file = "figures.json"
	var planned []table
	var all figures
	text, err := os.ReadFile(file)
	commit, noCommit := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err := errors.Join(err, json.Unmarshal(text, &all), json.Unmarshal(plan, &planned),
		noCommit); err != nil {
		return err
	}
	for _, mode := range modes {
		for _, t := range planned {
			name := fmt.Sprintf("%s:%v:%d:%s", t.Mode, t.Rate, t.Services, t.Layout)
			if !strings.HasPrefix(name+":", mode+":") {
				continue
			}
			log.Print(t)
			f, err := measure(ctx, t)
			if err != nil {
				return fmt.Errorf("%v: %w", t, err)
			}
			f.Commit = strings.TrimSpace(string(commit))
			all = all.with(f)
			text, err := json.MarshalIndent(all, "", "\t")
			if err := errors.Join(err, os.WriteFile(file, append(text, '\n'), 0o644)); err != nil {
				return err
			}
		}
	}
	return all.draw()
}

// with adds a figure in place of an older one of its table, or its CPU time to that of the same
// commit.
func (all figures) with(f figure) figures {
	same := func(o figure) bool { return o.table == f.table }
	if i := slices.IndexFunc(all, same); i >= 0 && all[i].Commit == f.Commit {
		f.CPU = append(f.CPU, all[i].CPU...)
	}
	slices.Sort(f.CPU)
	return append(slices.DeleteFunc(all, same), f)
}
