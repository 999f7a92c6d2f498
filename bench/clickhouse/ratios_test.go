package main

import (
	"io"
	"testing"

	"github.com/traceflake/traceflake/integration/servers"
)

// TestRatios holds what the documentation claims, on two million spans.
func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("generates and stores two million spans three times")
	}
	if layouts[0].Name != "collector" || layouts[2].Name != "service" || layouts[3].Name != "trace" {
		t.Fatal("other layouts than meant")
	}
	e := servers.ClickHouseForTest(t)
	d, err := newDataset(t.Context(), e, 2_000_000, 1, newBar(io.Discard, ""))
	if err != nil {
		t.Fatal(err)
	}
	measure := func(l layout) []measured {
		m, err := d.run(t.Context(), l, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	collector := measure(layouts[0])
	for _, c := range []struct {
		layout
		rows      map[string]float64 // at most, for one of the exporter's
		one, disk float64            // bytes of one trace at most
		cpu       float64            // to load and merge, for one of the exporter's
		size      float64            // bytes on disk, likewise
	}{
		{layouts[2], map[string]float64{oneTrace: 1. / 20, manyTraces: 1. / 50, allTraces: 1. / 50, allSpans: 1. / 20, newest: 1. / 20, searchDay: 1, searchHour: 1}, 500_000, 300_000, 1.5, 1.06},
		{layouts[3], map[string]float64{oneTrace: 1. / 4, manyTraces: 1. / 30, allTraces: 1. / 30, allSpans: 1. / 15, newest: 1. / 20, searchDay: 1.5, searchHour: 1.5}, 4_000_000, 1_000_000, 1.15, 1},
	} {
		m := measure(c.layout)[0]
		for state, of := range map[string]func(measured) map[string]cost{
			"fresh":  func(m measured) map[string]cost { return m.Fresh },
			"merged": func(m measured) map[string]cost { return m.Merged },
		} {
			ours, theirs, bloom := of(m), of(collector[0]), of(collector[1])
			for _, kind := range kinds {
				t.Logf("%s, %s: %-20s %+v, the exporter's table %+v, by bloom filter %+v", c.Name, state, kind, ours[kind], theirs[kind], bloom[kind])
				// Against the better of the exporter's two ways.
				if ratio := ours[kind].Rows / min(theirs[kind].Rows, bloom[kind].Rows); !(ratio <= c.rows[kind]) {
					t.Errorf("%s, %s: %s reads %.3f of the rows that the exporter's table does, want at most %.3f", c.Name, state, kind, ratio, c.rows[kind])
				}
			}
			if one := ours[oneTrace]; !(one.Bytes <= c.one && one.Disk <= c.disk) {
				t.Errorf("%s, %s: one trace reads %.0f bytes, %.0f from disk", c.Name, state, one.Bytes, one.Disk)
			}
		}
		if ratio := m.Bytes["all"] / collector[0].Bytes["all"]; !(ratio <= c.size) {
			t.Errorf("%s: %.1f bytes a span, the exporter's table %.1f", c.Name, m.Bytes["all"], collector[0].Bytes["all"])
		}
		cost, theirs := m.Load+m.Merge, collector[0].Load+collector[0].Merge
		t.Logf("%s: load and merge take %.1f s of CPU, the exporter's table %.1f", c.Name, cost, theirs)
		if !(cost <= 1.2*c.cpu*theirs) { // a fifth for noise
			t.Errorf("%s: load and merge take %.1f s of CPU, the exporter's table %.1f: want at most %.2f of it", c.Name, cost, theirs, c.cpu)
		}
	}
}
