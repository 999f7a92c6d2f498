package main

import (
	"fmt"
	"image/color"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

var palette = []color.RGBA{{0xd9, 0x5f, 0x02, 0xff}, {0x75, 0x70, 0xb3, 0xff}, {0x1b, 0x9e, 0x77, 0xff}, {0x66, 0x66, 0x66, 0xff}}

// series are the lines and bars of the plots.
var series = []struct{ layout, ids, about, label string }{
	{"collector", "random", "the exporter's table and its lookup table", "random IDs, the exporter's table"},
	{"overlay", "ours", "the exporter's table, the window from the ID", "ours, the exporter's table"},
	{"owned", "ours", "sorted by trace and time, granules of 1024, a projection for search", "ours, sorted by trace ID"},
}

func (r results) find(spans int, layout, ids, about string) (measured, bool) {
	for _, m := range r.at(spans) {
		if m.Layout == layout && m.IDs == ids && m.About == about {
			return m, true
		}
	}
	return measured{}, false
}

func (r results) plots(folder string) error {
	sizes := r.sizes()
	if len(sizes) == 0 {
		return nil
	}
	if err := r.rows(sizes[len(sizes)-1], folder); err != nil {
		return err
	}
	if len(sizes) == 1 {
		return nil
	}
	return r.growth(sizes, folder)
}

// rows compares the layouts at the largest size.
func (r results) rows(spans int, folder string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Rows read, %.0f million spans, fresh parts", float64(spans)/1e6)
	p.Y.Label.Text = "rows"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	p.Add(plotter.NewGrid())
	const (
		floor = 100  // of a logarithmic axis, below the smallest granule
		width = 0.24 // of a bar; kinds are 1 apart
	)
	for i, s := range series {
		m, ok := r.find(spans, s.layout, s.ids, s.about)
		if !ok {
			continue
		}
		labels := plotter.XYLabels{}
		for k, kind := range kinds {
			v := max(m.Fresh[kind].Rows, floor)
			x := float64(k) + float64(i-1)*(width+0.03)
			// plotter.BarChart begins at zero, which a logarithmic axis has not.
			bar, err := plotter.NewPolygon(plotter.XYs{{X: x - width/2, Y: floor}, {X: x - width/2, Y: v}, {X: x + width/2, Y: v}, {X: x + width/2, Y: floor}})
			if err != nil {
				return err
			}
			bar.Color, bar.Width = palette[i], 0
			p.Add(bar)
			if k == 0 {
				p.Legend.Add(s.label, bar)
			}
			labels.XYs = append(labels.XYs, plotter.XY{X: x, Y: v * 1.08})
			labels.Labels = append(labels.Labels, short(m.Fresh[kind].Rows))
			p.Y.Max = max(p.Y.Max, 4*v)
		}
		text, err := plotter.NewLabels(labels)
		if err != nil {
			return err
		}
		for k := range text.TextStyle {
			text.TextStyle[k].XAlign = -0.5
			text.TextStyle[k].Font.Size = vg.Points(8)
		}
		p.Add(text)
	}
	p.NominalX(kinds...)
	p.X.Min, p.X.Max, p.Y.Min = -0.5, float64(len(kinds))-0.5, floor
	return save(p, folder, "rows")
}

// growth shows how the costliest query grows with the data.
func (r results) growth(sizes []int, folder string) error {
	p := plot.New()
	p.Title.Text = "100 traces of one 5-minute window: rows read against data"
	p.X.Label.Text, p.Y.Label.Text = "million spans in a day", "rows"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(3)
	p.Add(plotter.NewGrid())
	p.Y.Min, p.Y.Max = 100, 1
	// A single size would have no width, and a logarithmic axis has no zero.
	p.X.Min, p.X.Max = float64(sizes[0])/2e6, float64(sizes[len(sizes)-1])/0.5e6
	for i, s := range series {
		var points plotter.XYs
		for _, spans := range sizes {
			if m, ok := r.find(spans, s.layout, s.ids, s.about); ok {
				y := max(m.Fresh[manyTraces].Rows, 100)
				points = append(points, plotter.XY{X: float64(spans) / 1e6, Y: y})
				p.Y.Max = max(p.Y.Max, 4*y)
			}
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, line.Width, dots.Color = palette[i], vg.Points(2), palette[i]
		p.Add(line, dots)
		p.Legend.Add(s.label, line, dots)
	}
	return save(p, folder, "growth")
}

func save(p *plot.Plot, folder, name string) error {
	return p.Save(9*vg.Inch, 4.5*vg.Inch, filepath.Join(folder, name+".svg"))
}

// short is a number of rows for a label.
func short(rows float64) string {
	switch {
	case rows >= 1e6:
		return fmt.Sprintf("%.2g M", rows/1e6)
	case rows >= 1e5:
		return fmt.Sprintf("%.0f k", rows/1e3)
	}
	return fmt.Sprintf("%.2g k", rows/1e3)
}
