package main

import (
	"io"
	"testing"

	"github.com/traceflake/traceflake/internal/embedded"
)

// TestRatios holds what the documentation claims, on five million spans.
func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("generates and stores ten million spans")
	}
	if layouts[0].Name != "collector" || layouts[2].Name != "owned" || layouts[2].IDs != "ours" {
		t.Fatal("other layouts than meant")
	}
	e := embedded.ClickHouseForTest(t)
	d, err := newDataset(t.Context(), e, 5_000_000, 1, newBar(io.Discard, ""))
	if err != nil {
		t.Fatal(err)
	}
	collector, err := d.run(t.Context(), layouts[0], io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	owned, err := d.run(t.Context(), layouts[2], io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for state, of := range map[string]func(measured) map[string]cost{
		"fresh":  func(m measured) map[string]cost { return m.Fresh },
		"merged": func(m measured) map[string]cost { return m.Merged },
	} {
		ours, theirs, bloom := of(owned[0]), of(collector[0]), of(collector[1])
		if g := ours[oneTrace].Granules; g != 1 {
			t.Errorf("%s: one trace reads %v granules, want 1", state, g)
		}
		for kind, most := range map[string]float64{manyTraces: 1. / 20, allTraces: 1. / 20, allSpans: 1. / 20, searchDay: 2, searchHour: 2} {
			t.Logf("%s: %-20s %+v, the exporter's table %+v, by bloom filter %+v", state, kind, ours[kind], theirs[kind], bloom[kind])
			// Against the better of the exporter's two ways.
			if ratio := ours[kind].Granules / min(theirs[kind].Granules, bloom[kind].Granules); !(ratio <= most) {
				t.Errorf("%s: %s reads %.3f of the granules that the exporter's table does, want at most %.3f", state, kind, ratio, most)
			}
		}
		for _, kind := range []string{searchDay, searchHour} {
			if ratio := ours[kind].Bytes / min(theirs[kind].Bytes, bloom[kind].Bytes); !(ratio <= 2) {
				t.Errorf("%s: %s reads %.2f of the bytes that the exporter's table does, want at most 2", state, kind, ratio)
			}
		}
	}
	if owned[0].Bytes["all"] > collector[0].Bytes["all"] {
		t.Errorf("%.1f bytes a span, the exporter's table %.1f", owned[0].Bytes["all"], collector[0].Bytes["all"])
	}
	cost, theirs := owned[0].Load+owned[0].Merge, collector[0].Load+collector[0].Merge
	t.Logf("load and merge: %.1f s of CPU, the exporter's table %.1f", cost, theirs)
	if !(cost <= 1.1*1.2*theirs) { // a fifth for noise
		t.Errorf("load and merge take %.1f s of CPU, the exporter's table %.1f: want at most 1.1 of it", cost, theirs)
	}
}
