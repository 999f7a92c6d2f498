package rates

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/traceflake/traceflake/bench/internal/gens"
)

var (
	grid  = color.RGBA{R: 0xdd, G: 0xdd, B: 0xdd, A: 0xff}
	lines = []struct {
		name   string
		colour color.Color
	}{
		{gens.Traceflake, color.RGBA{R: 0xd9, G: 0x4f, B: 0x1e, A: 0xff}},
		{gens.Default, color.RGBA{R: 0x3b, G: 0x6e, B: 0xa8, A: 0xff}},
		{gens.XRay, color.RGBA{R: 0x6f, G: 0x6f, B: 0x6f, A: 0xff}},
	}
)

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
	svg := vgsvg.New(24*vg.Centimeter, 9*vg.Centimeter)
	canvas := draw.New(svg)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Path())
	const pad = 3 * vg.Millimeter
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 2 * pad, PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: 2 * pad}
	for i, tile := range plot.Align([][]*plot.Plot{panels}, tiles, canvas)[0] {
		panels[i].Draw(tile)
	}
	return save(path, svg)
}

func (c Costs) panel(goroutines int) (*plot.Plot, float64, error) {
	p := plot.New()
	p.Title.Text = "NewIDs, one goroutine"
	if goroutines > 1 {
		p.Title.Text = fmt.Sprintf("NewIDs, %d goroutines on %d CPUs", goroutines, goroutines)
	}
	p.X.Label.Text, p.Y.Label.Text = "IDs a millisecond in each goroutine", "ns a call"
	rates := []Rate{Each20ms, Each1ms, Each32, Each1000, FlatOut}
	p.NominalX("1/20", "1", "32", "1000", "flat out")
	background := plotter.NewGrid()
	background.Vertical.Color, background.Horizontal.Color = grid, grid
	p.Add(background)
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

func save(path string, w io.WriterTo) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = w.WriteTo(file)
	return errors.Join(err, file.Close())
}
