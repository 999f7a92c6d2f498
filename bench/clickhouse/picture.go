package main

import (
	"bytes"
	"fmt"
	"html/template"
)

// pictured are the queries in the picture, and what it calls them.
var pictured = [][2]string{
	{"ours: one trace", "one trace by its ID"},
	{"Grafana: builder: trace by ID, 4.20.0 (by ID)", "one trace, as Grafana asks"},
	{"ours: 100 traces of 5 min", "100 traces of five minutes"},
	{"ours: spans of 5 min", "all spans of five minutes"},
	{"Grafana: builder: search, 1 h", "Grafana: search an hour"},
	{"Grafana: builder: search a service, 24 h", "Grafana: search a service, a day"},
	{"Grafana: dashboard: p99 a minute, 24 h", "Grafana: p99 of a service, a day"},
}

// bar is what a query reads, for what it reads of the exporter's table.
type bar struct {
	Y     int
	Class string
	Rows  float64
	Bytes float64
}

// Width is the length of a bar in the picture, whose whole length stands for the exporter's table.
func (bar) Width(ratio float64) float64 { return 200 * min(ratio, 1.25) }

func (bar) Percent(ratio float64) string { return fmt.Sprintf("%.0f %%", 100*ratio) }

var picture = template.Must(template.New("").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 {{.Height}}" font-family="system-ui, sans-serif" font-size="13">
<title>Rows and bytes that ClickHouse reads, in percent of the exporter's table</title>
<style>
text { fill: #1f2328 } .all { fill: #d0d7de } .ordered { fill: #0969da } .half { fill: #8250df } .small { font-size: 11px; fill: #59636e }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .all { fill: #3d444d } .ordered { fill: #4493f8 } .half { fill: #ab7df8 } .small { fill: #9198a1 } }
</style>
<text x="230" y="20" font-weight="600">rows</text><text x="530" y="20" font-weight="600">bytes from disk</text>
<rect class="all" x="230" y="30" width="200" height="10"/><text class="small" x="438" y="39">exporter's table, random IDs</text>
{{range .Queries}}<text x="220" y="{{.Y}}" text-anchor="end">{{.Name}}</text>
{{range .Bars}}<rect class="all" x="230" y="{{.Y}}" width="200" height="10"/><rect class="{{.Class}}" x="230" y="{{.Y}}" width="{{.Width .Rows}}" height="10"/><text class="small" x="488" y="{{.Y}}" dy="9">{{.Percent .Rows}}</text>
<rect class="all" x="530" y="{{.Y}}" width="200" height="10"/><rect class="{{.Class}}" x="530" y="{{.Y}}" width="{{.Width .Bytes}}" height="10"/><text class="small" x="788" y="{{.Y}}" dy="9">{{.Percent .Bytes}}</text>
{{end}}{{end}}<rect class="ordered" x="230" y="{{.Legend}}" width="12" height="10"/><text class="small" x="248" y="{{.Legend}}" dy="9">the default table, IDs of traceflake</text>
<rect class="half" x="470" y="{{.Legend}}" width="12" height="10"/><text class="small" x="488" y="{{.Legend}}" dy="9">the same, half of the IDs random</text>
</svg>
`))

// svg is a picture of the first tables measured: what the default layout reads of what the exporter's
// table does.
func (r *results) svg() ([]byte, error) {
	type query struct {
		Name string
		Y    int
		Bars []bar
	}
	var all []query
	y := 60
	of := size(r.Measured)
	for _, p := range pictured {
		q := query{Name: p[1], Y: y + 15}
		for _, m := range r.Measured {
			class := map[int]string{0: "ordered", 50: "half"}[m.Random]
			if m.Name != "service" || class == "" || m.Spans != of[0].Spans {
				continue
			}
			c, ok := m.cost(p[0])
			if !ok {
				return nil, fmt.Errorf("%v has no query %q", m.layout, p[0])
			}
			ratio := of.ratio(c)
			q.Bars = append(q.Bars, bar{Y: y, Class: class, Rows: ratio[0], Bytes: ratio[1]})
			y += 12
		}
		all = append(all, q)
		y += 12
	}
	var b bytes.Buffer
	err := picture.Execute(&b, map[string]any{"Queries": all, "Legend": y + 4, "Height": y + 24})
	return b.Bytes(), err
}
