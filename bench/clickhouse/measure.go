package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"
)

// measured is one layout at one size.
type measured struct {
	Layout, About, IDs string
	Spans              int
	Load, Merge        float64 // CPU seconds
	Wall               float64 // seconds of both
	Parts, MergedParts int
	Bytes              map[string]float64 // on disk, a span, once merged: of the columns of interest and "all"
	Fresh, Merged      map[string]cost    // by kind of query
	Times              map[string]times   // once merged
}

// page is how many spans a search lists.
const page = 20

// run loads one layout, measures it, merges it, measures it again and drops it.
func (d *dataset) run(ctx context.Context, l layout, out io.Writer) ([]measured, error) {
	title := fmt.Sprintf("%s, %s, %.3g M", l.Name, l.IDs, float64(d.spans)/1e6)
	const table = "spans"
	if err := d.create(ctx, l, table); err != nil {
		return nil, err
	}
	all := []measured{{Layout: l.Name, About: l.About, IDs: l.IDs, Spans: d.spans}}
	ways := []asker{l.ask}
	if l.other != nil {
		all, ways = append(all, all[0]), append(ways, l.other)
		all[1].About = l.otherAbout
	}
	m := &all[0]
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
	b := newBar(out, title+", queries, fresh")
	for i, ask := range ways {
		if all[i].Fresh, err = d.reads(ctx, ask, table, questions); err != nil {
			return nil, fmt.Errorf("%s: %w", title, err)
		}
		b.show(i+1, len(ways))
	}

	start, wall = cpu(), time.Now()
	b = newBar(out, title+", merge")
	b.show(0, 1)
	for _, name := range []string{table, table + "_trace_id_ts"} {
		if _, err := d.Query(ctx, "OPTIMIZE TABLE "+name+" FINAL"); err != nil && !strings.Contains(err.Error(), "UNKNOWN_TABLE") && !strings.Contains(err.Error(), "NOT_IMPLEMENTED") {
			return nil, err
		}
	}
	b.show(1, 1)
	m.Merge = cpu() - start
	m.Wall += time.Since(wall).Seconds()
	if _, err := scan(ctx, d.Engine, "SELECT count() "+active, &m.MergedParts); err != nil {
		return nil, err
	}
	if m.Bytes, err = d.sizes(ctx); err != nil {
		return nil, err
	}
	b = newBar(out, title+", queries, merged")
	for i, ask := range ways {
		if all[i].Merged, err = d.reads(ctx, ask, table, questions); err != nil {
			return nil, fmt.Errorf("%s: %w", title, err)
		}
		if o := &all[i]; i > 0 {
			o.Load, o.Merge, o.Wall, o.Parts, o.MergedParts, o.Bytes = m.Load, m.Merge, m.Wall, m.Parts, m.MergedParts, m.Bytes
		}
		b.show(i+1, len(ways))
	}
	// Last, as spans come in meanwhile.
	if m.Times, err = d.times(ctx, l, table, questions); err != nil {
		return nil, fmt.Errorf("%s: %w", title, err)
	}
	return all, nil
}

// create replaces the previous table by that of a layout.
func (d *dataset) create(ctx context.Context, l layout, table string) error {
	statements, err := l.create(table)
	if err != nil {
		return err
	}
	var drop []string
	for _, name := range []string{table + "_trace_id_ts_mv", table + "_trace_id_ts", table} {
		drop = append(drop, "DROP TABLE IF EXISTS "+name+" SYNC")
	}
	for _, statement := range append(drop, statements...) {
		if _, err := d.Query(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until background merges have ended.
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

// questions are the same for every layout, except for the IDs.
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
				return nil, fmt.Errorf("%s is not a trace ID", row[0])
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
		all[newest] = append(all[newest], question{kind: newest, from: day, to: from})
		all[searchHour] = append(all[searchHour], question{kind: searchHour, from: from, to: from.Add(time.Hour), service: pair[0], name: pair[1]})
		all[searchDay] = append(all[searchDay], question{kind: searchDay, from: day, to: day.Add(24 * time.Hour), service: pair[0], name: pair[1]})
	}
	return all, nil
}
