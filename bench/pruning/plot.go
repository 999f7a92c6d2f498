package pruning

import (
	"github.com/traceflake/traceflake/bench/internal/chart"
)

// Plot draws how much a query for one trace reads, as SVG.
func (c Costs) Plot(path string) error {
	pages := chart.Bars{Title: "PostgreSQL, BRIN: pages read for one trace"}
	groups := chart.Bars{Title: "Parquet: row groups left for one trace"}
	for _, r := range c.Rows {
		pages.Add(r.Kind, float64(r.OnePages))
		groups.Add(r.Kind, float64(r.OneGroups))
	}
	return chart.SaveBars(path, pages, groups)
}
