package main

import (
	"errors"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestScale: what a lookup reads does not grow with the days that are kept, and is less than on the
// exporter's table, whichever tool asks, at any share of random IDs. In tables as small as these,
// each file that is opened counts.
func TestScale(t *testing.T) {
	const rate = 100_000 // spans a day
	own := map[int]map[string]float64{}
	for _, c := range []struct {
		size
		own, tools float64 // the most for one byte of the exporter's
	}{
		{size{rate, 1, 10, false}, 0.25, 0.8},
		{size{8 * rate, 8, 10, false}, 0.25, 0.8},
		{size{2 * rate, 2, 0, false}, 0.25, 0.8},
		{size{2 * rate, 2, 100, false}, 0.4, 1},
		{size{2 * rate, 2, 50, true}, 0.8, 1.6},
	} {
		all, err := scale(t.Context(), c.size)
		if errors.Is(err, child.ErrNotInstalled) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		own[c.Days] = map[string]float64{}
		for _, r := range all {
			own[c.Days][r.ID] = r.Ours.Own
			t.Logf("%s, %s ID: ours %.0f, the exporter's %.0f", c.text(), r.ID, r.Ours, r.Exporter)
			if r.Ours.Own > c.own*r.Exporter.Own || r.Ours.Bare > c.tools*r.Exporter.Bare ||
				r.Ours.Grafana > c.tools*r.Exporter.Grafana {
				t.Errorf("%s, %s ID: %+v, the exporter's table %+v", c.text(), r.ID, r.Ours,
					r.Exporter)
			}
		}
	}
	for _, id := range []string{"ordered", "random"} {
		// The outliers' times of one day are less than the 128 KiB that ClickHouse reads at a time.
		if one, eight := own[1][id], own[8][id]; eight > 1.1*one+131_072 {
			t.Errorf("a lookup by an ID that is %s reads %.0f bytes of eight days, %.0f of one", id,
				eight, one)
		}
	}
}
