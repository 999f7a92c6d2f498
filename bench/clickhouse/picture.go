package main

import (
	"fmt"
	"strings"
)

// pictured lists the queries in the picture, with their labels.
var pictured = [][2]string{
	{"ours: one trace", "one trace by its ID"},
	{"Grafana: builder: trace by ID, 4.20.0 (by ID)", "one trace, as Grafana asks"},
	{"ours: 100 traces of 5 min", "100 traces of five minutes"},
	{"ours: spans of 5 min", "all spans of five minutes"},
	{"Grafana: builder: search, 1 h", "Grafana: search an hour"},
	{"Grafana: builder: search a service, 24 h", "Grafana: search a service, a day"},
	{"Grafana: dashboard: p99 a minute, 24 h", "Grafana: p99 of a service, a day"},
}

const pictureHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 %d"
  font-family="system-ui, sans-serif" font-size="13">
<title>Rows and bytes that ClickHouse reads, in percent of the exporter's table</title>
<style>
text { fill: #1f2328 } .all { fill: #d0d7de } .ordered { fill: #0969da } .half { fill: #8250df }
.small { font-size: 11px; fill: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .all { fill: #3d444d } .ordered { fill: #4493f8 } .half { fill: #ab7df8 }
.small { fill: #9198a1 } }
</style>
<text x="230" y="20" font-weight="600">rows</text>
<text x="530" y="20" font-weight="600">bytes from disk</text>
<rect class="all" x="230" y="30" width="200" height="10"/>
<text class="small" x="438" y="39">exporter's table, random IDs</text>
`

// svg returns a picture of what the default layout reads, in percent of the exporter's table, which
// has the grey bars.
func (r reads) svg() ([]byte, error) {
	var b strings.Builder
	bar := func(class string, x, y int, width float64) {
		fmt.Fprintf(&b, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"10\"/>", class, x,
			y, width)
	}
	label := func(x, y int, text string) {
		fmt.Fprintf(&b, "<text class=\"small\" x=\"%d\" y=\"%d\" dy=\"9\">%s</text>\n", x, y, text)
	}
	y := 60
	for _, p := range pictured {
		fmt.Fprintf(&b, "<text x=\"220\" y=\"%d\" text-anchor=\"end\">%s</text>\n", y+15, p[1])
		for _, m := range r.Tables {
			class := map[int]string{0: "ordered", 50: "half"}[m.Random]
			if m.Name != "ours" || class == "" {
				continue
			}
			c, ok := m.of(p[0])
			if !ok {
				return nil, fmt.Errorf("%v has no query %q", m.filled, p[0])
			}
			for i, ratio := range r.ratio(c) {
				x := 230 + 300*i
				bar("all", x, y, 200)
				bar(class, x, y, 200*min(ratio, 1.25))
				label(x+258, y, fmt.Sprintf("%.0f %%", 100*ratio))
			}
			y += 12
		}
		y += 12
	}
	bar("ordered", 230, y+4, 12)
	label(248, y+4, "the default table, IDs of traceflake")
	bar("half", 470, y+4, 12)
	label(488, y+4, "the same, half of the IDs random")
	return []byte(fmt.Sprintf(pictureHead, y+24) + b.String() + "</svg>\n"), nil
}
