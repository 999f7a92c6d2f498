package main

import (
	"io"
	"testing"

	"github.com/traceflake/traceflake/internal/embedded"
)

// TestRatios holds what the documentation claims, on a million spans with
// granules of 400 rows: as many granules as 20 million spans have, so that the
// counts are those of the large run. Disk space is not: small granules cost some.
func TestRatios(t *testing.T) {
	if testing.Short() {
		t.Skip("generates and stores two million spans")
	}
	e := embedded.ClickHouseForTest(t)
	d, err := newDataset(t.Context(), e, 1_000_000, 1, newBar(io.Discard, ""))
	if err != nil {
		t.Fatal(err)
	}
	d.runs = 0
	const granularity = 400
	collector, err := d.run(t.Context(), layouts[0], granularity, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	owned, err := d.run(t.Context(), layouts[2], granularity, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if layouts[0].Name != "collector" || layouts[2].Name != "owned" || layouts[2].IDs != "ours" {
		t.Fatal("other layouts than meant")
	}
	for _, kind := range kinds {
		t.Logf("%-20s %6.1f / %6.1f  the exporter's by bloom filter %6.1f / %6.1f  owned %6.1f / %6.1f", kind, collector[0].Fresh[kind].Granules, collector[0].Merged[kind].Granules,
			collector[1].Fresh[kind].Granules, collector[1].Merged[kind].Granules, owned[0].Fresh[kind].Granules, owned[0].Merged[kind].Granules)
	}
	t.Logf("CPU to load and merge: %.1f s, owned %.1f s; bytes a span %.1f, owned %.1f",
		collector[0].Load+collector[0].Merge, owned[0].Load+owned[0].Merge, collector[0].Bytes["all"], owned[0].Bytes["all"])
	for state, of := range map[string]func(measured) map[string]cost{
		"fresh":  func(m measured) map[string]cost { return m.Fresh },
		"merged": func(m measured) map[string]cost { return m.Merged },
	} {
		ours, theirs, bloom := of(owned[0]), of(collector[0]), of(collector[1])
		if g := ours[oneTrace].Granules; g != 1 {
			t.Errorf("%s: one trace reads %v granules, want 1", state, g)
		}
		for kind, most := range map[string]float64{manyTraces: 1. / 20, allTraces: 1. / 20, allSpans: 1. / 20, searchDay: 2, searchHour: 2} {
			// Against the better of the exporter's two ways.
			if ratio := ours[kind].Granules / min(theirs[kind].Granules, bloom[kind].Granules); !(ratio <= most) {
				t.Errorf("%s: %s reads %.3f of the granules that the exporter's table does, want at most %.3f", state, kind, ratio, most)
			}
		}
	}
	if owned[0].Bytes["all"] > collector[0].Bytes["all"] {
		t.Errorf("%.1f bytes a span, the exporter's table %.1f", owned[0].Bytes["all"], collector[0].Bytes["all"])
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "0", "1.5", "5,1", "1,1", "x", "2000"} {
		if _, err := parse([]string{"-spans", bad}); err == nil {
			t.Errorf("-spans %q is accepted", bad)
		}
	}
	if _, err := parse([]string{"more"}); err == nil {
		t.Error("an argument is accepted")
	}
	if o, err := parse([]string{"-spans", "1,5"}); err != nil || len(o.sizes) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}
