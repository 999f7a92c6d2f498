// Package chart draws panels side by side in an SVG file.
package chart

import (
	"errors"
	"image/color"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours of the series.
var (
	Ours   = color.RGBA{R: 0xd9, G: 0x4f, B: 0x1e, A: 0xff}
	Theirs = color.RGBA{R: 0x3b, G: 0x6e, B: 0xa8, A: 0xff}
	Others = color.RGBA{R: 0x6f, G: 0x6f, B: 0x6f, A: 0xff}
)

var faint = color.RGBA{R: 0xdd, G: 0xdd, B: 0xdd, A: 0xff}

// New returns a panel with a grid.
func New(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	return p
}

// Bars is a panel of named bars.
type Bars struct {
	Title  string
	names  []string
	values plotter.Values
}

// Add adds a bar.
func (b *Bars) Add(name string, value float64) {
	b.names, b.values = append(b.names, name), append(b.values, value)
}

// SaveBars draws panels of bars.
func SaveBars(path string, all ...Bars) error {
	panels := make([]*plot.Plot, len(all))
	for i, b := range all {
		p := New(b.Title)
		bars, err := plotter.NewBarChart(b.values, 40)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = Theirs, 0
		labels := plotter.XYLabels{}
		for x, v := range b.values {
			labels.XYs = append(labels.XYs, plotter.XY{X: float64(x), Y: v})
			labels.Labels = append(labels.Labels, strconv.FormatFloat(v, 'f', -1, 64))
			p.Y.Max = max(p.Y.Max, 1.12*v)
		}
		text, err := plotter.NewLabels(labels)
		if err != nil {
			return err
		}
		for k := range text.TextStyle {
			text.TextStyle[k].XAlign = draw.XCenter
		}
		text.Offset = vg.Point{Y: 3}
		p.Add(bars, text)
		p.NominalX(b.names...)
		p.Y.Min, p.X.Min, p.X.Max = 0, -0.6, float64(len(b.values))-0.4
		panels[i] = p
	}
	return Save(path, panels...)
}

// Save draws panels side by side.
func Save(path string, panels ...*plot.Plot) error {
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
