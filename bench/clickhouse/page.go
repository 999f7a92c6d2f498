package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/template"
)

//go:embed pages
var pages embed.FS

// figures are those of all tables, in the order of the first measurement of each.
type figures []figure

// check compares what the queries returned: with the same spans, each table must have the same
// answers. All figures are of one commit.
func (all figures) check() error {
	first := map[string]value{}
	for _, f := range all {
		if f.Commit != all[0].Commit {
			return fmt.Errorf("%v is of commit %s, not %s", f.table, f.Commit, all[0].Commit)
		}
		for _, v := range f.Values {
			key := fmt.Sprint(f.Rate, f.Hours, f.Services, f.Random, v.Name)
			other, ok := first[key]
			if ok && v.Answer != other.Answer {
				return fmt.Errorf("%v: %s: the answer is %s, and of another table %s", f.table,
					v.Name, v.Answer, other.Answer)
			}
			first[key] = v
		}
	}
	return nil
}

// draw checks the figures and writes the pages, whose templates are in pages.
func (all figures) draw() error {
	text, err := template.New("").Funcs(template.FuncMap{"table": all.pivot,
		"panel": all.panel}).ParseFS(pages, "pages/*")
	if err := errors.Join(err, all.check()); err != nil {
		return err
	}
	for _, page := range text.Templates() {
		file, err := os.Create(page.Name())
		if err != nil {
			return err
		}
		if err := errors.Join(page.Execute(file, all), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// of returns the figures of tables that differ in layout, share and hours, and the exporter's.
func (all figures) of(mode string, rate float64, services int) (some figures) {
	for _, f := range all {
		if f.Mode == mode && f.Rate == rate && f.Services == services {
			some = append(some, f)
		}
	}
	return some
}

// value returns a value by its name, and relative to that of the exporter's table of equal age.
func (all figures) value(f figure, name string) (v value, ratio float64) {
	of := func(f figure) value {
		if f.Mode == "cpu" {
			return value{N: (f.CPU[(len(f.CPU)-1)/2] + f.CPU[len(f.CPU)/2]) / 2} // the median
		}
		return f.Values[slices.IndexFunc(f.Values, func(v value) bool { return v.Name == name })]
	}
	i := slices.IndexFunc(all, func(base figure) bool {
		return base.Layout == "exporter" && base.Hours == f.Hours
	})
	return of(f), of(f).N / of(all[i]).N
}

// pivot returns a table in Markdown: a row for each value, and a column for each table.
func (all figures) pivot(mode string, rate float64, services int) string {
	some := all.of(mode, rate, services)
	var b strings.Builder
	for _, f := range some {
		fmt.Fprintf(&b, "| %s, %d %%, %g h ", f.Layout, f.Random, f.Hours)
	}
	head := "| " + b.String() + "|\n|" + strings.Repeat("---|", len(some)+1)
	b.Reset()
	rows := some[0].Values
	if mode == "cpu" {
		rows = []value{{Name: "median, lowest, highest"}}
	}
	for _, row := range rows {
		b.WriteString("\n| " + row.Name + " |")
		for _, f := range some {
			v, ratio := some.value(f, row.Name)
			fmt.Fprintf(&b, " %.2f", v.N)
			if v.Answer != "" {
				fmt.Fprintf(&b, " / %.0f", v.Rows)
			}
			if mode == "cpu" {
				fmt.Fprintf(&b, ", %.2f, %.2f", f.CPU[0], slices.Max(f.CPU))
			}
			if f.Layout != "exporter" {
				fmt.Fprintf(&b, " (%.3f)", ratio)
			}
			b.WriteString(" |")
		}
	}
	return head + b.String()
}

// pictured lists the modes and values in the picture, which has their labels.
var pictured = [][2]string{
	{"reads", "TraceId = x"},
	{"reads", "100 newest traces, with their time"},
	{"reads", "all spans of 10 s"},
	{"reads", "all spans of 5 min"},
	{"reads", "a service: p99 a minute, 1 h"},
	{"reads", "a service: all errors, %v h"},
	{"reads", "disk"},
	{"cpu", "median"},
}

// panel draws the values of our table at one rate, from x on, in percent of the exporter's table,
// which has the grey bars.
func (all figures) panel(x int, rate float64) string {
	var b strings.Builder
	for i, p := range pictured {
		some := all.of(p[0], rate, 25)
		for _, f := range some {
			y, ok := map[int]int{100: 64 + 36*i, 0: 76 + 36*i}[f.Random]
			if !ok || f.Layout != "ours" {
				continue
			}
			_, ratio := some.value(f, strings.Replace(p[1], "%v", fmt.Sprint(f.Hours), 1))
			fmt.Fprintf(&b, `<rect class="all" x="%d" y="%d" width="160" height="10"/>`+
				`<rect class="random%d" x="%[1]d" y="%[2]d" width="%.1[4]f" height="10"/>`+
				`<text class="small" x="%d" y="%d">%.1f %%</text>`+"\n", x, y, f.Random,
				160*min(ratio, 1.4), x+232, y+9, 100*ratio)
		}
	}
	return b.String()
}
