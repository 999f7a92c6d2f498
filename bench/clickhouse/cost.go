package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// cost is what a query actually read, the median over its samples, with
// ClickHouse's caches empty.
type cost struct {
	Rows  float64
	Bytes float64 // of these rows, uncompressed
	Disk  float64 // bytes from files: columns, marks and indexes
}

// times of a query, in milliseconds. 99 is the 99th percentile.
type times struct {
	Cold, Warm, Warm99 float64
	Busy, Busy99       float64 // warm, while inserts run at a steady rate
}

// samples of each kind of query are counted, at least two of them, and the first
// of them timed: once with caches empty, and with caches warm so often, or for so
// long.
const (
	samples, timed = 6, 4
	runs           = 25
	budget         = time.Second
)

// patience ends a kind of query early, so that the slow ones of a large table do
// not take most of the benchmark's time.
const patience = 5 * time.Second

// Inserts that run beside queries: so many spans, so often.
const (
	busySpans    = 5000
	busyInterval = 500 * time.Millisecond
)

// reads runs all samples once and counts.
func (d *dataset) reads(ctx context.Context, ask asker, table string, questions map[string][]question) (map[string]cost, error) {
	costs := map[string]cost{}
	for _, kind := range kinds {
		var rows, bytes, disk []float64
		for i, since := 0, time.Now(); i < len(questions[kind]) && (i < 2 || time.Since(since) < patience); i++ {
			q := questions[kind][i]
			run, err := ask(table, q)
			if err != nil {
				return nil, err
			}
			if err := d.forget(ctx); err != nil {
				return nil, err
			}
			_, read, err := d.Reads(ctx, whole(run))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", run, err)
			}
			rows, bytes, disk = append(rows, float64(read.Rows)), append(bytes, float64(read.Bytes)), append(disk, float64(read.Disk))
		}
		costs[kind] = cost{median(rows), median(bytes), median(disk)}
	}
	return costs, nil
}

// times runs all samples with caches empty, then with them warm, alone and during
// inserts.
func (d *dataset) times(ctx context.Context, l layout, table string, questions map[string][]question) (map[string]times, error) {
	all := map[string]times{}
	for _, kind := range kinds {
		cold, warm, err := d.wall(ctx, l.ask, table, questions[kind])
		if err != nil {
			return nil, err
		}
		all[kind] = times{Cold: median(cold), Warm: median(warm), Warm99: percentile(warm, 0.99)}
	}
	inserting, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.keepInserting(inserting, table, l.IDs) }()
	for _, kind := range kinds {
		_, busy, err := d.wall(ctx, l.ask, table, questions[kind])
		if err != nil {
			stop()
			return nil, errors.Join(err, <-ended)
		}
		t := all[kind]
		t.Busy, t.Busy99 = median(busy), percentile(busy, 0.99)
		all[kind] = t
	}
	stop()
	return all, <-ended
}

// keepInserting stores spans at a steady rate until ctx ends.
func (d *dataset) keepInserting(ctx context.Context, table, kind string) error {
	tick := time.NewTicker(busyInterval)
	defer tick.Stop()
	for from := 0; ; from += busySpans {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := d.insertBlock(context.WithoutCancel(ctx), table, kind, from%max(d.spans-busySpans, 1), busySpans); err != nil {
			return err
		}
	}
}

// wall are the times of all samples in milliseconds: the first run of each, with
// caches empty, and those after it.
func (d *dataset) wall(ctx context.Context, ask asker, table string, questions []question) (cold, warm []float64, err error) {
	begun := time.Now()
	for i, q := range questions[:min(timed, len(questions))] {
		if i > 0 && time.Since(begun) > patience {
			break
		}
		run, err := ask(table, q)
		if err != nil {
			return nil, nil, err
		}
		if err := d.forget(ctx); err != nil {
			return nil, nil, err
		}
		one := func() (float64, error) {
			start := time.Now()
			if _, err := d.Query(ctx, whole(run)); err != nil {
				return 0, fmt.Errorf("%s: %w", run, err)
			}
			return float64(time.Since(start).Microseconds()) / 1e3, nil
		}
		first, err := one()
		if err != nil {
			return nil, nil, err
		}
		cold = append(cold, first)
		for i, since := 0, time.Now(); i == 0 || i < runs && time.Since(since) < budget; i++ {
			again, err := one()
			if err != nil {
				return nil, nil, err
			}
			warm = append(warm, again)
		}
	}
	return cold, warm, nil
}

// forget empties ClickHouse's caches. The kernel's stays.
func (d *dataset) forget(ctx context.Context) error {
	for _, cache := range []string{"MARK CACHE", "UNCOMPRESSED CACHE", "INDEX MARK CACHE", "INDEX UNCOMPRESSED CACHE"} {
		if _, err := d.Query(ctx, "SYSTEM DROP "+cache); err != nil {
			return err
		}
	}
	return nil
}

// whole makes the engine read all columns of the result and return one number.
// The query condition cache must not help the next run.
func whole(run string) string {
	const forgetful = "\nSETTINGS use_query_condition_cache = 0"
	settings := forgetful
	if at := strings.LastIndex(run, "\nSETTINGS "); at >= 0 {
		settings = forgetful + ", " + run[at+len("\nSETTINGS "):]
		run = run[:at]
	}
	return "SELECT count() FROM (\n" + run + "\n) WHERE NOT ignore(*)" + settings
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

func percentile(values []float64, p float64) float64 {
	slices.Sort(values)
	if len(values) == 0 {
		return math.NaN()
	}
	return values[min(int(math.Ceil(p*float64(len(values)))), len(values))-1]
}
