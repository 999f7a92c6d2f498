package rates

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/traceflake/traceflake/bench/internal/chart"
	"github.com/traceflake/traceflake/bench/internal/gens"
)

var lines = []struct {
	name   string
	colour color.Color
}{{gens.Traceflake, chart.Ours}, {gens.Default, chart.Theirs}, {gens.XRay, chart.Others}}

// Plot draws the cost of NewIDs against the rate as SVG, one panel for each
// number of goroutines.
func (c Costs) Plot(path string) error {
	var panels []*plot.Plot
	top := 0.0
	for _, n := range gens.Crowds() {
		p, highest, err := c.panel(n)
		if err != nil {
			return err
		}
		panels, top = append(panels, p), max(top, highest)
	}
	for _, p := range panels {
		p.Y.Min, p.Y.Max = 0, 1.15*top
	}
	return chart.Save(path, panels...)
}

func (c Costs) panel(goroutines int) (*plot.Plot, float64, error) {
	title := "NewIDs, one goroutine"
	if goroutines > 1 {
		title = fmt.Sprintf("NewIDs, %d goroutines on %d CPUs", goroutines, goroutines)
	}
	p := chart.New(title)
	p.X.Label.Text, p.Y.Label.Text = "IDs a millisecond in each goroutine", "ns a call"
	rates := []Rate{Each20ms, Each1ms, Each32, Each1000, FlatOut}
	p.NominalX("1/20", "1", "32", "1000", "flat out")
	highest := 0.0
	for _, l := range lines {
		var points plotter.XYs
		for x, r := range rates {
			result := c[Cell{gens.NewIDs, r.Name, goroutines}]
			if result == nil {
				return nil, 0, fmt.Errorf("rates: nothing to plot for %s, %d goroutines", r.Name, goroutines)
			}
			if ns := result.Ns(l.name); !math.IsNaN(ns) {
				points, highest = append(points, plotter.XY{X: float64(x), Y: ns}), max(highest, ns)
			}
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, 0, err
		}
		line.Color, line.Width, dots.Color, dots.Shape = l.colour, 1.5, l.colour, draw.CircleGlyph{}
		p.Add(line, dots)
		p.Legend.Add(l.name, line, dots)
	}
	p.Legend.Top, p.Legend.Padding = true, 2
	return p, highest, nil
}
