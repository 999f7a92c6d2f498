package main

import (
	"context"
	_ "embed" // the SQL
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

//go:embed sql/scale.sql
var generateScaled string

// growth is a table that grows day by day.
type growth struct {
	Rate, Random int // spans a day; random IDs in percent
	Unmerged     bool
	Days         []int // after which lookups of the oldest day are measured
}

// growths returns one growth for each rate, in thousands, and share of random IDs.
func growths(rates, merged, unmerged, days []int) (all []growth) {
	for _, rate := range rates {
		for _, random := range merged {
			all = append(all, growth{rate * 1000, random, false, days})
		}
		for _, random := range unmerged {
			all = append(all, growth{rate * 1000, random, true, days})
		}
	}
	return all
}

// text describes the table after some days.
func (g growth) text(days int) string {
	text := fmt.Sprintf("%.3g million a day, %d days, %d %% random", float64(g.Rate)/1e6, days,
		g.Random)
	if g.Unmerged {
		text += ", unmerged"
	}
	return text
}

// lookups holds the bytes that lookups of one trace read from files, with ClickHouse's caches
// empty.
type lookups struct {
	Own     float64 // our query; for the exporter's table, that of its documentation
	Bare    float64 // TraceId = …, as HyperDX sends it
	Grafana float64 // the times from the lookup table, then the spans
	// the same two, if the tool's user has the setting of our query
	SetBare, SetGrafana float64
}

// indexes holds what lookups read besides columns, in bytes on disk.
type indexes struct {
	Ranges, Blooms float64 // on TraceId and Timestamp
	Lookup         float64 // the lookup table, with its marks and key
	Parts          int
}

// scaled holds the lookups of traces of the oldest day after some days.
type scaled struct {
	growth
	Days int
	ID   string // ordered or random
	// By layout:
	Lookups []lookups
	Indexes []indexes
}

// measure stores the same spans in each layout, and looks up traces of the oldest day.
func (g growth) measure(ctx context.Context, all []layout) (results []scaled, err error) {
	var stores []store
	defer func() {
		for _, s := range stores {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, l := range all {
		s, err := open(ctx)
		if err != nil {
			return nil, err
		}
		stores = append(stores, s)
		if err := s.create(ctx, l); err != nil {
			return nil, err
		}
		if g.Unmerged {
			if err := s.each(ctx, "SYSTEM STOP MERGES %s"); err != nil {
				return nil, err
			}
		}
	}
	stored := 0
	for _, days := range g.Days {
		for _, s := range stores {
			if err := s.addDays(ctx, g, stored, days); err != nil {
				return nil, err
			}
		}
		stored = days
		for _, id := range []string{"ordered", "random"} {
			r := scaled{growth: g, Days: days, ID: id}
			for i, s := range stores {
				l, err := s.lookups(ctx, all[i], id)
				if err != nil {
					return nil, err
				}
				in, err := s.indexes(ctx)
				if err != nil {
					return nil, err
				}
				r.Lookups, r.Indexes = append(r.Lookups, l), append(r.Indexes, in)
			}
			if r.Lookups[0].Bare > 0 {
				progress("%s, %s: %.0f", g.text(days), id, r.Lookups)
				results = append(results, r)
			}
		}
	}
	return results, nil
}

// addDays stores the spans of some days, in four blocks a day, or in larger ones if they are merged
// anyway.
func (s store) addDays(ctx context.Context, g growth, from, to int) error {
	block := max(g.Rate/4, min(g.Rate, 500_000))
	if g.Unmerged {
		block = g.Rate / 4
	}
	for at := from * g.Rate; at < to*g.Rate; at += block {
		if err := s.Exec(ctx, strings.NewReplacer("{random}", fmt.Sprint(g.Random),
			"{start}", fmt.Sprint(day.UnixMilli()), "{rate}", fmt.Sprint(g.Rate/10),
			"{from}", fmt.Sprint(at/10), "{count}", fmt.Sprint(block/10),
		).Replace(generateScaled)); err != nil {
			return err
		}
	}
	if g.Unmerged {
		return nil
	}
	return s.merge(ctx)
}

var grafana = regexp.MustCompile(
	`(?m)^-- Grafana: builder: trace by ID, 4.20.0.*\n(.*);$`).FindStringSubmatch(toolsSQL)[1]

// lookups measures the lookups of two traces and returns the mean, or zeros if there is no such
// trace.
func (s store) lookups(ctx context.Context, l layout, id string) (r lookups, err error) {
	noon := day.Add(12 * time.Hour)
	ids, err := s.ids(ctx, fmt.Sprintf("SELECT DISTINCT TraceId FROM spans\n"+
		"WHERE (age('hour', Timestamp, traceIDTime(TraceId)) BETWEEN -4 AND 4) = %d AND "+
		"Timestamp >= '%s' AND Timestamp < '%s' ORDER BY Timestamp LIMIT 2",
		map[string]int{"ordered": 1, "random": 0}[id], noon.Format(time.DateTime),
		noon.Add(time.Hour).Format(time.DateTime)))
	const set = " SETTINGS use_skip_indexes_on_data_read = 0"
	for _, id := range ids {
		tool := strings.NewReplacer("{table}", table, "{trace}", fmt.Sprintf("%x",
			id)).Replace(grafana)
		for _, q := range []struct {
			into *float64
			sql  string
		}{
			{&r.Own, l.traces(id)}, {&r.Bare, bare(id)}, {&r.Grafana, tool},
			{&r.SetBare, bare(id) + set}, {&r.SetGrafana, tool + set},
		} {
			c, err := s.measure(ctx, l.Name, 10, q.sql)
			if err != nil {
				return r, err
			}
			*q.into += float64(c.Disk) / float64(len(ids))
		}
	}
	return r, err
}

// indexes measures the indexes and the lookup table.
func (s store) indexes(ctx context.Context) (r indexes, err error) {
	return r, s.scan(ctx, "WITH (SELECT (sumIf(data_compressed_bytes, type = 'minmax'), "+
		"sumIf(data_compressed_bytes, type = 'bloom_filter')) FROM system.data_skipping_indices "+
		"WHERE database = currentDatabase() AND table = 'spans' AND (expr LIKE '%TraceId%' OR "+
		"expr LIKE '%Timestamp%')) AS indexes SELECT indexes.1, indexes.2, "+
		"sumIf(bytes_on_disk, table != 'spans'), count() FROM system.parts "+
		"WHERE active AND database = currentDatabase() AND startsWith(table, 'spans')",
		&r.Ranges, &r.Blooms, &r.Lookup, &r.Parts)
}

// scalePage returns the text of SCALE.md.
func scalePage(head string, layouts []layout, all []scaled) string {
	var b strings.Builder
	b.WriteString(`# What a lookup by ID costs as tables grow

Megabytes from files with ClickHouse's caches empty, of one trace of the oldest day. "Own" is our
query, "bare" is ` + "`TraceId = …`" + ` alone, as HyperDX asks, "Grafana" is its two steps. The
ratios are to the exporter's table with the same spans: of our query to Grafana's lookup there, and
of each tool's lookup to the same there. "Set" is with use_skip_indexes_on_data_read = 0. Spans of
six columns, 10 to a trace, 200 pairs of service and name. Merged unless a row says otherwise: then
four inserts a day, and no merge.

` + head + `

| table | layout | ID | own | bare | Grafana | exporter's bare | Grafana | ratio: own | bare | ` +
		`Grafana | set: bare | Grafana | exporter's bare | Grafana |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
`)
	for _, r := range all {
		theirs := r.Lookups[0]
		for i, own := range r.Lookups[1:] {
			fmt.Fprintf(&b, "| %s | %s | %s |", r.text(r.Days), layouts[i+1].Name, r.ID)
			for _, bytes := range []float64{own.Own, own.Bare, own.Grafana, theirs.Bare,
				theirs.Grafana} {
				fmt.Fprintf(&b, " %.2f |", bytes/1e6)
			}
			fmt.Fprintf(&b, " %.2f | %.2f | %.2f |", own.Own/theirs.Grafana, own.Bare/theirs.Bare,
				own.Grafana/theirs.Grafana)
			for _, bytes := range []float64{own.SetBare, own.SetGrafana, theirs.SetBare,
				theirs.SetGrafana} {
				fmt.Fprintf(&b, " %.2f |", bytes/1e6)
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString(`
## Indexes and lookup tables

Bytes on disk: of the indexes on ranges of TraceId and Timestamp, and of the bloom filter on
TraceId, for 1024 spans; of the lookup table, for a span. Parts include those of the lookup table.

| table | layout | ranges | bloom filter | lookup table | parts |
|---|---|---|---|---|---|
`)
	for i, r := range all {
		if i > 0 && all[i-1].text(all[i-1].Days) == r.text(r.Days) {
			continue // of another kind of ID
		}
		for j, in := range r.Indexes {
			spans := float64(r.Rate * r.Days)
			fmt.Fprintf(&b, "| %s | %s | %.1f | %.0f | %.2f | %d |\n", r.text(r.Days),
				layouts[j].Name, in.Ranges*1024/spans, in.Blooms*1024/spans, in.Lookup/spans,
				in.Parts)
		}
	}
	return b.String()
}
