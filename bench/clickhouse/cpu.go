package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// load holds the cost of loading a table in a server of its own.
type load struct {
	CPU   float64 // seconds of the server, from the first insert to the last merge
	Spans int
	footprint
}

// loaded holds the rounds of a layout with some share of random IDs and spans to a block.
type loaded struct {
	layout
	Random, Block int
	Rounds        []load
}

// cpu returns the minimum and the median of the rounds' CPU times.
func (l loaded) cpu() (least, median float64) {
	var all []float64
	for _, r := range l.Rounds {
		all = append(all, r.CPU)
	}
	slices.Sort(all)
	return all[0], (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

const (
	rounds    = 3
	maxBlocks = 500 // of a round: small blocks are measured with fewer spans
)

// loading measures layouts with each share of random IDs and size of blocks. The layouts take
// turns, so that a busy machine slows all of them down alike.
func loading(ctx context.Context, spans int, all []layout, shares, blocks []int) ([]loaded,
	error) {
	d, err := newDataset(ctx, spans)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	var results []loaded
	for _, random := range shares {
		for _, size := range blocks {
			dir, err := d.files(ctx, random, size)
			if err != nil {
				return nil, err
			}
			first := len(results)
			for _, l := range all {
				results = append(results, loaded{layout: l, Random: random, Block: size})
			}
			for range rounds {
				for i := range all {
					l, err := loadAlone(ctx, dir, all[i])
					if err != nil {
						return nil, fmt.Errorf("%s: %w", all[i].Name, err)
					}
					progress("%d %% random, blocks of %d, %s: %.1f s, %.1f bytes a span", random,
						size, all[i].Name, l.CPU, l.Disk/float64(l.Spans))
					results[first+i].Rounds = append(results[first+i].Rounds, l)
				}
			}
			if err := os.RemoveAll(dir); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// files writes the spans to a file for each block, in the format in which the exporter sends them.
func (d *dataset) files(ctx context.Context, random, size int) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "traceflake-blocks-"); err != nil {
		return "", err
	}
	for i, from := 0, 0; from < min(d.spans, maxBlocks*size); i, from = i+1, from+size {
		if err := d.Exec(ctx, fmt.Sprintf("%s INTO OUTFILE '%s/%06d' FORMAT Native",
			batch(random, from, size), dir, i)); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// loadAlone loads the blocks in a server of its own.
func loadAlone(ctx context.Context, dir string, l layout) (r load, err error) {
	s, err := open(ctx)
	if err != nil {
		return r, err
	}
	defer func() { _ = s.Close() }()
	if err := s.create(ctx, l); err != nil {
		return r, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return r, err
	}
	start, err := s.CPU()
	if err != nil {
		return r, err
	}
	for _, file := range files {
		if err := s.Exec(ctx, "INSERT INTO spans ("+columns+") FROM INFILE '"+file+
			"' COMPRESSION 'none' FORMAT Native"); err != nil {
			return r, err
		}
	}
	if err := s.merge(ctx); err != nil {
		return r, err
	}
	end, err := s.CPU()
	if err != nil {
		return r, err
	}
	r.CPU = (end - start).Seconds()
	if err := s.scan(ctx, "SELECT count() FROM spans", &r.Spans); err != nil {
		return r, err
	}
	r.footprint, err = s.footprint(ctx)
	return r, err
}

// cpuPage returns the text of CPU.md.
func cpuPage(head string, all []loaded) string {
	var b strings.Builder
	b.WriteString(`# What the layouts cost: CPU time, disk and memory

CPU seconds of the server from the first insert to the last merge, for a million spans: minimum and
median of ` + fmt.Sprint(rounds) + ` rounds. Each table is loaded alone, in a new server process;
the layouts take turns. The blocks are files in the format that the exporter sends, prepared by
another process: spans with attributes and events, in time order. Nothing is subtracted. Disk is in
bytes a span. Memory is in kB for a million spans: of the primary key, of the sizes of granules, and
of marks. Everything includes the lookup table. Ratios are to the exporter's table with the same
spans.

` + head + `

| random IDs | spans in a block | layout | CPU s: minimum | median | ratio: of minima | ` +
		`of medians | disk | ratio | key | granules | marks | ratio |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
`)
	var base loaded
	for _, l := range all {
		if l.Name == exporter.Name {
			base = l
		}
		last, first := l.Rounds[0], base.Rounds[0]
		million := float64(last.Spans) / 1e6
		low, middle := l.cpu()
		baseLow, baseMiddle := base.cpu()
		fmt.Fprintf(&b, "| %d %% | %d | %s | %.2f | %.2f | %.2f | %.2f | %.1f | %.2f | %.1f "+
			"| %.1f | %.0f | %.2f |\n", l.Random, l.Block, l.Name, low/million, middle/million,
			low/baseLow, middle/baseMiddle, last.Disk/float64(last.Spans), last.Disk/first.Disk,
			last.Key/1e3/million, last.Granularity/1e3/million, last.Marks/1e3/million,
			last.Marks/first.Marks)
	}
	return b.String()
}
