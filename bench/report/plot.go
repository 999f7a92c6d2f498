package main

import (
	"errors"
	"image/color"
	"math"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	ours   = color.RGBA{R: 0xd9, G: 0x4f, B: 0x1e, A: 0xff}
	theirs = color.RGBA{R: 0x3b, G: 0x6e, B: 0xa8, A: 0xff}
	others = color.RGBA{R: 0x6f, G: 0x6f, B: 0x6f, A: 0xff}
)

// plotRates draws the cost of NewIDs against the rate, one panel for one CPU and one for two.
func (r *runs) plotRates(path string) error {
	var panels []*plot.Plot
	top := 0.0
	for _, cpus := range []struct{ title, suffix string }{{"NewIDs, one CPU", ""}, {"NewIDs, two CPUs", "-2"}} {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = cpus.title, "IDs a millisecond in each goroutine", "ns a call"
		p.NominalX("1", "32", "1000", "flat out")
		p.Legend.Top, p.Legend.Padding = true, 2
		for _, g := range []struct {
			name   string
			colour color.Color
		}{{"traceflake", ours}, {"sdk", theirs}, {"xray", others}} {
			var points plotter.XYs
			for x, rate := range []string{"1-a-ms", "32-a-ms", "1000-a-ms", "flat"} {
				if ns := r.median("NewIDs/rate="+rate+"/gen="+g.name+cpus.suffix, "ns/op", nothing); !math.IsNaN(ns) {
					points, top = append(points, plotter.XY{X: float64(x), Y: ns}), max(top, ns)
				}
			}
			if len(points) == 0 {
				continue
			}
			line, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			line.Color, line.Width, dots.Color, dots.Shape = g.colour, 1.5, g.colour, draw.CircleGlyph{}
			p.Add(line, dots)
			p.Legend.Add(g.name, line, dots)
		}
		panels = append(panels, p)
	}
	for _, p := range panels {
		p.Y.Min, p.Y.Max = 0, 1.15*max(top, 1)
	}
	return save(path, panels)
}

// save draws panels side by side as SVG.
func save(path string, panels []*plot.Plot) error {
	svg := vgsvg.New(24*vg.Centimeter, 9*vg.Centimeter)
	canvas := draw.New(svg)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Path())
	const pad = 3 * vg.Millimeter
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 2 * pad, PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: 2 * pad}
	for i, tile := range plot.Align([][]*plot.Plot{panels}, tiles, canvas)[0] {
		panels[i].Draw(tile)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = svg.WriteTo(file)
	return errors.Join(err, file.Close())
}
