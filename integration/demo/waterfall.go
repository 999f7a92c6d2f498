package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// waterfall draws a trace: one line per span, children below their parents, with a bar for the
// time in which it ran. The costs of finding it follow.
func waterfall(w io.Writer, t found) {
	const cells = 50
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table)
	for _, l := range t.Lines {
		left, long := int(l.Left*cells/100), max(int(l.Width*cells/100), 1)
		fmt.Fprintf(table, "%s\t%s%s\t%s\t%s%s\n", l.ServiceName, strings.Repeat("  ", l.Depth), l.SpanName, milliseconds(l.Took()),
			strings.Repeat(" ", left), strings.Repeat("━", long))
	}
	fmt.Fprintf(table, "\n%d spans in %s.\nThe ID was generated at %s. Decoded: %s.\n",
		len(t.Lines), milliseconds(t.Total), t.Began().Format("2006-01-02 15:04:05.000 MST"), t.Decoded)
	for _, c := range t.Costs {
		fmt.Fprintf(table, "\n%s\n  \tthe default table\tthe Collector's own schema\n", c.What)
		for _, r := range c.Rows {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", r.Kind, r.Ours, r.Exporter)
		}
	}
	fmt.Fprintln(table)
	_ = table.Flush()
}

// drawing is a trace as it is drawn.
type drawing struct {
	Lines []line
	Total time.Duration // from the start of the first span to the end of the last one
}

// line is a span and its place in the drawing.
type line struct {
	span
	Depth       int
	Begins      time.Duration // after the start
	Left, Width float64       // of the bar, in percent
}

// draw puts children below their parents, each in order of time. A span whose parent did not begin
// before it or is not stored, such as an app's, is at the top level.
func draw(spans []span) drawing {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(b.Duration, a.Duration))
	})
	d := drawing{Total: 1}
	for _, s := range spans {
		begins := s.Timestamp.Sub(spans[0].Timestamp)
		d.Total = max(d.Total, begins+s.Took())
		depth, at := 0, len(d.Lines)
		if parent := slices.IndexFunc(d.Lines, func(l line) bool { return l.SpanID == s.ParentSpanID }); parent >= 0 {
			depth = d.Lines[parent].Depth + 1
			at = parent + 1
			for at < len(d.Lines) && d.Lines[at].Depth >= depth { // after its siblings and what is below them
				at++
			}
		}
		d.Lines = slices.Insert(d.Lines, at, line{span: s, Depth: depth, Begins: begins})
	}
	for i := range d.Lines {
		l := &d.Lines[i]
		percent := func(part time.Duration) float64 { return 100 * float64(part) / float64(d.Total) }
		l.Width = max(percent(l.Took()), 0.4) // otherwise it would be invisible
		l.Left = min(percent(l.Begins), 100-l.Width)
	}
	return d
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
