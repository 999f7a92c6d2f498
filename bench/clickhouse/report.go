package main

import (
	"fmt"
	"strings"
)

// markdown is RESULTS.md.
func markdown(runs []*results) string {
	text := `# What the layouts cost and save in ClickHouse

Generated spans of three days, 60 % of them on the day that is queried, with 50 services of 8 names;
merged. "exporter" is the table of the Collector's exporter with its lookup table and random IDs;
"overlay" the same table without the lookup table; "service" and "trace" are the layouts ServiceFirst
and TraceFirst, "lookup" is ServiceFirst with KeepLookup. "text" is the exporter's table with a text index on TraceId in place of the bloom
filter, and "buckets" is ServiceFirst with maps in buckets. The percentage is the share of random trace
IDs, the rest are ours. A trace asked for by its ID has a random one wherever some have.
Rows and bytes are what ClickHouse counted in system.events while a query ran
with its caches empty.
`
	for _, r := range runs {
		text += r.markdown()
	}
	return text
}

func (r *results) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %.2f million spans\n\nWritten by `%s` on %s: commit %s, ClickHouse %s, %s.\n",
		float64(r.Spans)/1e6, r.Command, r.Date, r.Commit, r.ClickHouse, r.Machine)
	row := func(first string, value func(m measured) string) {
		b.WriteString("| " + first)
		for _, m := range r.Measured {
			b.WriteString(" | " + value(m))
		}
		b.WriteString(" |\n")
	}
	head := func(first string) {
		row(first, func(m measured) string { return m.layout().String() })
		row("---", func(measured) string { return "---" })
	}
	if len(r.Measured) > 0 {
		b.WriteString("\n### Bytes on disk a span\n\n")
		head("")
		row("bytes", func(m measured) string { return fmt.Sprintf("%.1f", m.Bytes) })
	}
	if len(r.CPU) > 0 {
		b.WriteString("\n### CPU time to load and merge, for one of the exporter's\n\nMedian of interleaved rounds, and each round.\n\n| layout | spans | ratio | rounds |\n|---|---|---|---|\n")
		for _, c := range r.CPU {
			fmt.Fprintf(&b, "| %s | %d k | %.2f | %.2f |\n", c.Layout, c.Spans/1000, c.Ratio, c.Rounds)
		}
	}
	if len(r.Measured) == 0 {
		return b.String()
	}
	b.WriteString("\n### Thousands of rows read, and kilobytes from disk\n\nIn brackets: for one row that the exporter's table reads.\n\n")
	head("query")
	for i, base := range r.Measured[0].Costs {
		row(base.Name, func(m measured) string {
			c := m.Costs[i]
			text := fmt.Sprintf("%s / %s", kilo(c.Rows), kilo(c.Disk))
			if m.Name != exporter && base.Rows > 0 {
				text += fmt.Sprintf(" (%.2f)", float64(c.Rows)/float64(base.Rows))
			}
			return text
		})
	}
	b.WriteString("\n### Above 1.2 times the exporter's rows\n\nExcept for queries that read less than 1 % of the day's spans.\n\n")
	for _, m := range r.Measured[1:] {
		var all []string
		for i, c := range m.Costs {
			if base := r.Measured[0].Costs[i]; float64(c.Rows) > 1.2*float64(base.Rows) && c.Rows > uint64(r.Day)/100 {
				all = append(all, fmt.Sprintf("%s (%.1f)", c.Name, float64(c.Rows)/float64(max(base.Rows, 1))))
			}
		}
		fmt.Fprintf(&b, "- %v: %d of %d. %s\n", m.layout(), len(all), len(m.Costs), strings.Join(all, "; "))
	}
	return b.String()
}

func kilo(n uint64) string {
	if n < 10_000 {
		return fmt.Sprintf("%.1f", float64(n)/1e3)
	}
	return fmt.Sprintf("%.0f", float64(n)/1e3)
}
