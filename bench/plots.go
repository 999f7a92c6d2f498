package main

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	ours   = color.RGBA{R: 0xd9, G: 0x4f, B: 0x1e, A: 0xff}
	theirs = color.RGBA{R: 0x3b, G: 0x6e, B: 0xa8, A: 0xff}
	third  = color.RGBA{R: 0x6f, G: 0x6f, B: 0x6f, A: 0xff}
	faint  = color.RGBA{R: 0xdd, G: 0xdd, B: 0xdd, A: 0xff}
)

// savePlots draws one row of plots as SVG and PNG.
func savePlots(name string, width, height vg.Length, plots ...*plot.Plot) error {
	paint := func(c draw.Canvas) {
		c.SetColor(color.White)
		c.Fill(c.Path())
		tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: 4 * vg.Millimeter, PadRight: 4 * vg.Millimeter, PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter, PadLeft: 2 * vg.Millimeter}
		for i, canvas := range plot.Align([][]*plot.Plot{plots}, tiles, c)[0] {
			plots[i].Draw(canvas)
		}
	}
	if err := os.MkdirAll("plots", 0o755); err != nil {
		return err
	}
	svg := vgsvg.New(width, height)
	paint(draw.New(svg))
	image := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))
	paint(draw.New(image))
	if err := saveTo(filepath.Join("plots", name+".svg"), svg); err != nil {
		return err
	}
	return saveTo(filepath.Join("plots", name+".png"), vgimg.PngCanvas{Canvas: image})
}

func newGrid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = faint, faint
	return g
}

// costPoint is a line of the plot of costs.
type costPoint struct {
	label string
	ns    float64
	mine  bool
}

// plotCosts draws costs on a logarithmic axis, the cheapest on top.
func plotCosts(points []costPoint) error {
	slices.SortStableFunc(points, func(a, b costPoint) int {
		if a.ns > b.ns {
			return -1
		}
		return 1
	})
	p := plot.New()
	p.Title.Text = "Cost of an ID, one goroutine"
	p.X.Label.Text = "ns of wall time, logarithmic"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades(points[0].ns*4)
	names := make([]string, len(points))
	mine, others := plotter.XYs{}, plotter.XYs{}
	labels := plotter.XYLabels{}
	for i, c := range points {
		names[i] = c.label
		xy := plotter.XY{X: c.ns, Y: float64(i)}
		if c.mine {
			mine = append(mine, xy)
		} else {
			others = append(others, xy)
		}
		labels.XYs = append(labels.XYs, xy)
		labels.Labels = append(labels.Labels, "  "+short(c.ns))
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max = 1, points[0].ns*4
	p.Add(newGrid())
	for _, set := range []struct {
		points plotter.XYs
		colour color.Color
	}{{others, theirs}, {mine, ours}} {
		s, err := plotter.NewScatter(set.points)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: set.colour, Radius: 4, Shape: draw.CircleGlyph{}}
		p.Add(s)
	}
	l, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	for i := range l.TextStyle {
		l.TextStyle[i].YAlign = draw.YCenter
	}
	l.Offset = vg.Point{X: 4, Y: 2}
	p.Add(l)
	return savePlots("cost", 18*vg.Centimeter, vg.Length(len(points))*0.6*vg.Centimeter+3*vg.Centimeter, p)
}

// decades are ticks at 1, 10, 100 and so on.
func decades(most float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for at := 1.0; at <= most; at *= 10 {
		ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'f', 0, 64)})
		for i := 2.0; i < 10 && at*i <= most; i++ {
			ticks = append(ticks, plot.Tick{Value: at * i})
		}
	}
	return ticks
}

func short(ns float64) string {
	if ns < 100 {
		return strconv.FormatFloat(ns, 'f', 1, 64)
	}
	return strconv.FormatFloat(ns, 'f', 0, 64)
}

// plotCrowd draws throughput against goroutines.
func plotCrowd(m samples) error {
	var plots []*plot.Plot
	for _, name := range []string{"NewIDs", "NewSpanID"} {
		p := plot.New()
		p.Title.Text = name
		p.X.Label.Text, p.Y.Label.Text = "goroutines", "million calls a second"
		p.X.Scale = plot.LogScale{}
		ticks := make([]plot.Tick, len(crowd))
		for i, n := range crowd {
			ticks[i] = plot.Tick{Value: float64(n), Label: strconv.Itoa(n)}
		}
		p.X.Tick.Marker = plot.ConstantTicks(ticks)
		p.Y.Min = 0
		p.Add(newGrid())
		for _, who := range []struct {
			gen    string
			colour color.Color
		}{{"traceflake", ours}, {"default", theirs}, {"xray", third}} {
			var points plotter.XYs
			for _, n := range crowd {
				if k := key("Crowd"+name, who.gen, n); len(m.of[k]) > 0 {
					points = append(points, plotter.XY{X: float64(n), Y: 1e3 / m.median(k, sample.wallNs)})
				}
			}
			if len(points) == 0 {
				continue
			}
			line, dots, err := plotter.NewLinePoints(points)
			if err != nil {
				return err
			}
			line.Color, dots.Color, dots.Shape = who.colour, who.colour, draw.CircleGlyph{}
			line.Width = 1.5
			p.Add(line, dots)
			p.Legend.Add(who.gen, line, dots)
			for _, xy := range points {
				p.Y.Max = max(p.Y.Max, xy.Y*1.25)
			}
		}
		p.Legend.Top, p.Legend.Padding = true, 3
		plots = append(plots, p)
	}
	return savePlots("goroutines", 24*vg.Centimeter, 10*vg.Centimeter, plots...)
}

// plotBalance draws the histogram of low halves, and how far shards deviate.
func plotBalance(b balance) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Low halves of %d trace IDs in %d equal ranges", b.ids, bins)
	p.X.Label.Text, p.Y.Label.Text = "range", "IDs"
	counts := make(plotter.Values, bins)
	for i, n := range b.histogram {
		counts[i] = float64(n)
	}
	bars, err := plotter.NewBarChart(counts, 5)
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width = ours, 0
	p.Add(bars)
	p.Y.Min = 0
	if err := savePlots("low-halves", 18*vg.Centimeter, 9*vg.Centimeter, p); err != nil {
		return err
	}

	var plots []*plot.Plot
	for i, n := range shardings {
		p := plot.New()
		p.Title.Text = fmt.Sprintf("%d shards", n)
		p.X.Label.Text = "shard"
		if i == 0 {
			p.Y.Label.Text = "standard deviations from the mean"
		}
		p.Y.Min, p.Y.Max = -4.5, 4.5
		points := make(plotter.XYs, n)
		for j, d := range deviations(b.shards[i]) {
			points[j] = plotter.XY{X: float64(j), Y: d}
			p.Y.Min, p.Y.Max = min(p.Y.Min, d), max(p.Y.Max, d)
		}
		s, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: ours, Radius: 1.2, Shape: draw.CircleGlyph{}}
		p.Add(s)
		for _, y := range []float64{-3, 3} {
			edge, err := plotter.NewLine(plotter.XYs{{X: 0, Y: y}, {X: float64(n - 1), Y: y}})
			if err != nil {
				return err
			}
			edge.Color, edge.Dashes = third, []vg.Length{3, 3}
			p.Add(edge)
		}
		plots = append(plots, p)
	}
	return savePlots("shards", 24*vg.Centimeter, 9*vg.Centimeter, plots...)
}

func saveTo(path string, w io.WriterTo) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = w.WriteTo(file)
	return errors.Join(err, file.Close())
}
