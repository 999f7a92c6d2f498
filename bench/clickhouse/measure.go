package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/traceflake/traceflake/internal/embedded"
)

// cost is what a query reads, as the median over its samples.
type cost struct {
	Granules float64 // left by all indexes, of all tables and subqueries
	Rows     float64 // read
	Bytes    float64 // read, uncompressed
}

// measured is one layout at one size.
type measured struct {
	Layout, About, IDs string
	Spans              int
	Load, Merge        float64 // CPU seconds
	Wall               float64 // seconds of both
	Parts, MergedParts int
	Total              int                // granules
	Bytes              map[string]float64 // on disk, a span, once merged: of the columns of interest and "all"
	Fresh, Merged      map[string]cost    // by kind of query
}

// samples of each kind of query are explained, and a few of them run; of searches all.
const samples, runs = 12, 3

// page is how many spans a search lists.
const page = 20

// run loads one layout, measures it, merges it, measures it again and drops it.
func (d *dataset) run(ctx context.Context, l layout, out io.Writer) ([]measured, error) {
	title := fmt.Sprintf("%s, %s, %.3g M", l.Name, l.IDs, float64(d.spans)/1e6)
	table := "spans"
	statements, err := l.create(table)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{table + "_trace_id_ts_mv", table + "_trace_id_ts", table} {
		if _, err := d.Query(ctx, "DROP TABLE IF EXISTS "+name+" SYNC"); err != nil {
			return nil, err
		}
	}
	for _, statement := range statements {
		if _, err := d.Query(ctx, statement); err != nil {
			return nil, err
		}
	}
	m := measured{Layout: l.Name, About: l.About, IDs: l.IDs, Spans: d.spans, Fresh: map[string]cost{}, Merged: map[string]cost{}}
	second := m
	second.About, second.Fresh, second.Merged = l.otherAbout, map[string]cost{}, map[string]cost{}

	start, wall := cpu(), time.Now()
	if err := d.insert(ctx, table, l.IDs, newBar(out, title)); err != nil {
		return nil, err
	}
	if err := d.settle(ctx); err != nil {
		return nil, err
	}
	m.Load, m.Wall = cpu()-start, time.Since(wall).Seconds()
	const active = "FROM system.parts WHERE active AND database = currentDatabase() AND startsWith(table, 'spans')"
	if _, err := scan(ctx, d.Engine, "SELECT count() "+active, &m.Parts); err != nil {
		return nil, err
	}
	questions, err := d.questions(ctx, l.IDs)
	if err != nil {
		return nil, err
	}
	ask := func(into, other map[string]cost, when string) error {
		b := newBar(out, title+", queries, "+when)
		for i, kind := range kinds {
			if into[kind], err = d.cost(ctx, l.ask, table, questions[kind]); err != nil {
				return fmt.Errorf("%s, %s: %w", title, kind, err)
			}
			if l.other != nil {
				if other[kind], err = d.cost(ctx, l.other, table, questions[kind]); err != nil {
					return fmt.Errorf("%s, %s: %w", title, kind, err)
				}
			}
			b.show(i+1, len(kinds))
		}
		return nil
	}
	if err := ask(m.Fresh, second.Fresh, "fresh"); err != nil {
		return nil, err
	}

	start, wall = cpu(), time.Now()
	b := newBar(out, title+", merge")
	b.show(0, 1)
	for _, name := range []string{table, table + "_trace_id_ts"} {
		if _, err := d.Query(ctx, "OPTIMIZE TABLE "+name+" FINAL"); err != nil && !strings.Contains(err.Error(), "UNKNOWN_TABLE") {
			return nil, err
		}
	}
	b.show(1, 1)
	m.Merge = cpu() - start
	m.Wall += time.Since(wall).Seconds()
	if err := ask(m.Merged, second.Merged, "merged"); err != nil {
		return nil, err
	}
	if _, err := scan(ctx, d.Engine, "SELECT count(), sumIf(marks, table = 'spans') "+active, &m.MergedParts, &m.Total); err != nil {
		return nil, err
	}
	m.Bytes, err = d.sizes(ctx)
	all := []measured{m}
	if l.other != nil {
		second.Load, second.Merge, second.Wall, second.Parts, second.MergedParts, second.Total, second.Bytes = m.Load, m.Merge, m.Wall, m.Parts, m.MergedParts, m.Total, m.Bytes
		all = append(all, second)
	}
	return all, err
}

// settle waits until the engine merges no more by itself.
func (d *dataset) settle(ctx context.Context) error {
	for quiet := 0; quiet < 5; {
		var merges int
		if _, err := scan(ctx, d.Engine, "SELECT count() FROM system.merges", &merges); err != nil {
			return err
		}
		quiet++
		if merges > 0 {
			quiet = 0
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// cpu is what this process, which the engine runs in, has used in seconds.
func cpu() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// sizes are bytes on disk a span.
func (d *dataset) sizes(ctx context.Context) (map[string]float64, error) {
	sizes := map[string]float64{}
	for name, query := range map[string]string{
		"all":        "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() AND startsWith(table, 'spans')",
		"lookup":     "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() AND table = 'spans_trace_id_ts'",
		"projection": "SELECT sum(bytes_on_disk) FROM system.projection_parts WHERE active AND database = currentDatabase() AND table = 'spans'",
		"TraceId":    "SELECT sum(column_data_compressed_bytes) FROM system.parts_columns WHERE active AND database = currentDatabase() AND table = 'spans' AND column = 'TraceId'",
		"attributes": "SELECT sum(column_data_compressed_bytes) FROM system.parts_columns WHERE active AND database = currentDatabase() AND table = 'spans' AND column LIKE '%Attributes'",
		"indexes":    "SELECT sum(data_compressed_bytes) FROM system.data_skipping_indices WHERE database = currentDatabase() AND table = 'spans'",
	} {
		var bytes float64
		if _, err := scan(ctx, d.Engine, query, &bytes); err != nil {
			return nil, err
		}
		sizes[name] = bytes / float64(d.spans)
	}
	return sizes, nil
}

// questions are the same for every layout, but for the IDs.
func (d *dataset) questions(ctx context.Context, kind string) (map[string][]question, error) {
	r := rand.New(rand.NewPCG(5, 6))
	pairs, err := d.Query(ctx, "SELECT ServiceName, SpanName FROM source GROUP BY 1, 2 ORDER BY count(), 1, 2")
	if err != nil {
		return nil, err
	}
	all := map[string][]question{}
	for range samples {
		from := day.Add(time.Hour + time.Duration(r.Int64N(int64(22*time.Hour))))
		const minutes = 5 * time.Minute
		q := question{kind: manyTraces, from: from, to: from.Add(minutes)}
		rows, err := d.Query(ctx, fmt.Sprintf("SELECT DISTINCT %s FROM source WHERE ParentSpanId = '' AND ms >= %d AND ms < %d ORDER BY h2 LIMIT 100", // from all of the window
			ids[kind], from.UnixMilli(), q.to.UnixMilli()))
		if err != nil {
			return nil, err
		}
		for _, row := range rows.Rows {
			var id []byte
			if _, err := fmt.Sscanf(row[0], "%x", &id); err != nil || len(id) != 16 {
				return nil, fmt.Errorf("%s is no trace ID", row[0])
			}
			q.ids = append(q.ids, [16]byte(id))
		}
		all[manyTraces] = append(all[manyTraces], q)
		one := q
		one.kind, one.ids = oneTrace, q.ids[:1]
		all[oneTrace] = append(all[oneTrace], one)
		for _, q.kind = range []string{allTraces, allSpans} {
			q.ids = nil
			all[q.kind] = append(all[q.kind], q)
		}
		pair := pairs.Rows[r.IntN(len(pairs.Rows))]
		all[searchHour] = append(all[searchHour], question{kind: searchHour, from: from, to: from.Add(time.Hour), service: pair[0], name: pair[1]})
		all[searchDay] = append(all[searchDay], question{kind: searchDay, from: day, to: day.Add(24 * time.Hour), service: pair[0], name: pair[1]})
	}
	return all, nil
}

// cost asks all samples and takes the medians.
func (d *dataset) cost(ctx context.Context, ask asker, table string, questions []question) (cost, error) {
	var granules, rows, bytes []float64
	for i, q := range questions {
		run, inner, err := ask(table, q)
		if err != nil {
			return cost{}, err
		}
		var read embedded.Granules
		for _, statement := range append(inner, run) {
			g, err := d.Granules(ctx, statement)
			if err != nil {
				return cost{}, fmt.Errorf("%s: %w", statement, err)
			}
			read.Read += g.Read
		}
		granules = append(granules, float64(read.Read))
		if search := q.service != ""; i >= runs && !search {
			continue
		}
		r, err := d.Query(ctx, whole(run))
		if err != nil {
			return cost{}, fmt.Errorf("%s: %w", run, err)
		}
		rows = append(rows, float64(r.RowsRead))
		bytes = append(bytes, float64(r.BytesRead))
	}
	return cost{median(granules), median(rows), median(bytes)}, nil
}

// whole makes the engine read all columns of the result and return one number.
func whole(run string) string {
	settings := ""
	if at := strings.LastIndex(run, "\nSETTINGS "); at >= 0 {
		run, settings = run[:at], run[at:]
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
