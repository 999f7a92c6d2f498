package main

import (
	"context"
	_ "embed" // the SQL
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/integration/servers"
)

//go:embed sql/scale.sql
var generateScaled string

// size is that of a table.
type size struct {
	Spans, Days, Random int // spans in all; random IDs in percent
	Unmerged            bool
}

// text says it in words.
func (s size) text() string {
	text := fmt.Sprintf("%.4g million spans, %d days, %d %% random", float64(s.Spans)/1e6, s.Days,
		s.Random)
	if s.Unmerged {
		text += ", unmerged"
	}
	return text
}

// lookups are the bytes that lookups of one trace read from files, with ClickHouse's caches empty.
type lookups struct {
	Own     float64 // our query on our table, and that of the exporter's documentation on its table
	Bare    float64 // as HyperDX asks: TraceId = …
	Grafana float64 // the times from the lookup table or view, then the spans
}

// scaled are the lookups of traces of the oldest day in a table of some size.
type scaled struct {
	size
	ID             string // ordered or random
	Ours, Exporter lookups
}

// kind is a table, how it is created, and our way to ask it for traces.
type kind struct {
	table  string
	create func() ([]string, error)
	ask    func(table string, id [16]byte) string
}

var kinds = []kind{
	{"ours", clickhouse.Schema{Table: "ours"}.Statements, func(table string, id [16]byte) string {
		return bind(clickhouse.Schema{Table: table}.Trace(id))
	}},
	{"theirs", func() ([]string, error) {
		return strings.Split(strings.ReplaceAll(collectorTable+";\n"+lookupTable, "{table}",
			"theirs"), ";\n"), nil
	}, func(table string, id [16]byte) string { return exporterTraces(table, [][16]byte{id}) }},
}

// scale stores the same spans in both tables and looks up traces of the oldest day.
func scale(ctx context.Context, s size) (all []scaled, err error) {
	e, err := servers.ClickHouse(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = e.Close() }()
	d := &dataset{Engine: e}
	for _, k := range kinds {
		create, err := k.create()
		if err != nil {
			return nil, err
		}
		if err := d.Exec(ctx, create...); err != nil {
			return nil, err
		}
		if err := d.fill(ctx, k.table, s); err != nil {
			return nil, err
		}
	}
	for _, id := range []string{"ordered", "random"} {
		ids, err := d.ids(ctx, fmt.Sprintf("SELECT DISTINCT TraceId FROM theirs\n"+
			"WHERE (age('hour', Timestamp, traceIDTime(TraceId)) BETWEEN -4 AND 4) = %d AND "+
			"Timestamp >= '%s' ORDER BY Timestamp LIMIT 2",
			map[string]int{"ordered": 1, "random": 0}[id],
			day.Add(12*time.Hour).Format(time.DateTime)))
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			continue
		}
		r := scaled{size: s, ID: id}
		for i, into := range []*lookups{&r.Ours, &r.Exporter} {
			if err := d.lookUp(ctx, kinds[i], ids, into); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// fill stores spans in four blocks a day, or in larger ones if they are merged anyway.
func (d *dataset) fill(ctx context.Context, table string, s size) error {
	traces, blocks := s.Spans/10, max(1, s.Spans/500_000)
	if s.Unmerged {
		blocks = 4 * s.Days
		if err := d.Exec(ctx, "SYSTEM STOP MERGES "+table); err != nil {
			return err
		}
	}
	for i := range blocks {
		from, to := traces*i/blocks, traces*(i+1)/blocks
		if err := d.Exec(ctx,
			strings.NewReplacer("{table}", table, "{random}", fmt.Sprint(s.Random), "{days}",
				fmt.Sprint(s.Days),
				"{start}", fmt.Sprint(day.UnixMilli()), "{traces}", fmt.Sprint(traces), "{from}",
				fmt.Sprint(from), "{count}", fmt.Sprint(to-from),
			).Replace(generateScaled)); err != nil {
			return err
		}
	}
	if s.Unmerged {
		return nil
	}
	second := map[string]string{"ours": "ours_outliers", "theirs": "theirs_trace_id_ts"}[table]
	return d.Exec(ctx, "OPTIMIZE TABLE "+table+" FINAL", "OPTIMIZE TABLE "+second+" FINAL")
}

var grafana = regexp.MustCompile(
	`(?m)^-- Grafana: builder: trace by ID, 4.20.0.*\n(.*);$`).FindStringSubmatch(toolsSQL)[1]

// lookUp measures the lookups of some traces, in the mean.
func (d *dataset) lookUp(ctx context.Context, k kind, ids [][16]byte, into *lookups) error {
	for _, id := range ids {
		for _, q := range []struct {
			into *float64
			sql  string
		}{
			{&into.Own, k.ask(k.table, id)},
			{&into.Bare, fmt.Sprintf("SELECT * FROM %s WHERE TraceId = '%x'", k.table, id)},
			{&into.Grafana,
				strings.NewReplacer("{table}", k.table, "{trace}",
					fmt.Sprintf("%x", id)).Replace(grafana)},
		} {
			r, err := d.Reads(ctx, q.sql)
			if err != nil {
				return fmt.Errorf("%s: %w", q.sql, err)
			}
			if len(r.Rows) != 10 {
				return fmt.Errorf("%s: %d spans, want 10", q.sql, len(r.Rows))
			}
			*q.into += float64(r.Read.Disk) / float64(len(ids))
		}
	}
	return nil
}

// sizes are those that the benchmark measures for a table of some spans.
func sizes(spans int) []size {
	return []size{
		{spans, 1, 1, false}, {spans, 4, 1, false}, {spans, 16, 1, false},
		{spans, 4, 0, false}, {spans, 4, 10, false}, {spans, 4, 50, false}, {spans, 4, 100, false},
		{spans, 4, 1, true}, {spans, 4, 50, true},
	}
}

// scaling measures all sizes of some millions of spans, and returns SCALE.md.
func (r *results) scaling(ctx context.Context, millions string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `# What a lookup by ID costs as tables grow

Megabytes from files with ClickHouse's caches empty, of one trace of the oldest day: our query on our
table and that of the exporter's documentation on its table; `+"`TraceId = …`"+
		` alone, as HyperDX asks;
and Grafana's two steps. Spans of six columns, 10 to a trace, 200 pairs of service and name.

%s, `+"`make bench-clickhouse-scale MILLIONS=%s`"+`, %s; commit %s.

| table | ID | ours | exporter's | ratio | bare | exporter's | ratio | Grafana | exporter's | ratio |
|---|---|---|---|---|---|---|---|---|---|---|
`, r.Date, millions, r.Machine, r.Commit)
	for m := range strings.SplitSeq(millions, ",") {
		n, err := strconv.ParseFloat(m, 64)
		if err != nil {
			return "", fmt.Errorf("%q: millions of spans are numbers, separated by commas",
				millions)
		}
		for _, s := range sizes(int(n * 1e6)) {
			fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), s.text())
			all, err := scale(ctx, s)
			if err != nil {
				return "", fmt.Errorf("%s: %w", s.text(), err)
			}
			for _, r := range all {
				fmt.Fprintf(&b, "| %s | %s |", r.text(), r.ID)
				for _, pair := range [][2]float64{{r.Ours.Own, r.Exporter.Own},
					{r.Ours.Bare, r.Exporter.Bare},
					{r.Ours.Grafana, r.Exporter.Grafana}} {
					fmt.Fprintf(&b, " %.2f | %.2f | %.2f |", pair[0]/1e6, pair[1]/1e6,
						pair[0]/pair[1])
				}
				b.WriteByte('\n')
			}
		}
	}
	return b.String(), nil
}
