package main

import (
	"errors"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestScale: what a lookup reads does not grow with the days that are kept, and is less than on the
// exporter's table, whichever tool asks, at any share of random IDs. In tables as small as these,
// whose parts have one file for all columns, our query reads a larger share than in SCALE.md.
func TestScale(t *testing.T) {
	const rate = 100_000 // spans a day
	for _, c := range []struct {
		growth
		own, tools float64 // the most for one byte of the exporter's
	}{
		{growth{rate, 10, false, []int{1, 8}}, 0.35, 0.6},
		{growth{rate, 0, false, []int{2}}, 0.35, 0.6},
		{growth{rate, 100, false, []int{2}}, 0.35, 0.6},
		{growth{rate, 50, true, []int{2}}, 0.8, 0.9},
	} {
		all, err := c.measure(t.Context(), layouts[:2])
		if errors.Is(err, child.ErrNotInstalled) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		first := map[string]float64{}
		for _, r := range all {
			theirs, ours := r.Lookups[0], r.Lookups[1]
			t.Logf("%s, %s ID: the exporter's %.0f, ours %.0f", r.text(r.Days), r.ID, theirs, ours)
			if ours.Own > c.own*theirs.Grafana || ours.Bare > c.tools*theirs.Bare ||
				ours.Grafana > c.tools*theirs.Grafana {
				t.Errorf("%s, %s ID: %+v, the exporter's table %+v", r.text(r.Days), r.ID, ours,
					theirs)
			}
			// The lookup table of one day is less than the 128 KiB that ClickHouse reads at a time.
			if one, ok := first[r.ID]; ok && ours.Own > 1.1*one+131_072 {
				t.Errorf("a lookup by an ID that is %s reads %.0f bytes of %d days, %.0f of one",
					r.ID, ours.Own, r.Days, one)
			} else if !ok {
				first[r.ID] = ours.Own
			}
		}
	}
}
