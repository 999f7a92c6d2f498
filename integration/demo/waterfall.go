package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// columns is how wide the output is.
const columns = 110

// waterfall draws a trace: one line per span, children below their parents, with a bar for the
// time in which it ran. The costs of finding it follow.
func waterfall(w io.Writer, t found) {
	names, services := 0, 0
	for _, l := range t.Lines {
		names = max(names, utf8.RuneCountInString(l.branch+l.SpanName))
		services = max(services, len(l.ServiceName))
	}
	names = min(names, 50)
	cells := max(columns-services-names-14, 10)
	fmt.Fprintln(w)
	for _, l := range t.Lines {
		name, note := []rune(l.branch+l.SpanName), ""
		if len(name) > names {
			name = append(name[:names-1], '…')
		}
		if l.Failed() {
			note = " " + l.StatusMessage
		}
		left := min(int(l.Left)*cells/100, cells-1)
		long := max(int(l.Width)*cells/100, 1)
		fmt.Fprintf(w, "%-*s  %-*s %9s  %s%s%s\n", services, l.ServiceName, names, string(name), milliseconds(l.Took()),
			strings.Repeat(" ", left), strings.Repeat("━", long), note)
	}
	fmt.Fprintf(w, "\n%d spans in %s.\n", len(t.Lines), milliseconds(t.Total))
	if t.Dated {
		fmt.Fprintf(w, "The ID was made at %s; the first span began %s later. Decoded: %s.\n",
			t.Made().Format("2006-01-02 15:04:05.000 MST"), milliseconds(t.Lag()), t.Decoded)
	}
	for _, c := range t.Costs {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(table, "\n  %s\tsorted by trace ID\tthe Collector's own schema\n", c.What)
		for _, r := range c.Rows {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", r.Kind, fmt.Sprintf(r.Format, r.Ours), fmt.Sprintf(r.Format, r.Exporter))
		}
		_ = table.Flush()
	}
	fmt.Fprintf(w, "\n  %s\n\n", t.Measured)
}

// drawing is a trace as it is drawn.
type drawing struct {
	Lines []line
	Start time.Time     // of the first span
	Total time.Duration // until the end of the last one
}

// line is a span and its place in the drawing.
type line struct {
	span
	branch      string // of the tree, in text
	Depth       int
	Begins      time.Duration // after the start
	Left, Width float64       // of the bar, in percent
}

// draw puts children below their parents, each in order of time. A span whose parent is not stored,
// such as an app's, is at the top level.
func draw(spans []span) drawing {
	stored := make(map[string]bool, len(spans))
	for _, s := range spans {
		stored[s.SpanID] = true
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.SpanID, b.SpanID))
	})
	children := make(map[string][]span)
	for _, s := range spans {
		parent := s.ParentSpanID
		if !stored[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	var d drawing
	placed := make(map[string]bool, len(spans))
	var place func(s span, depth int, indent, branch string)
	place = func(s span, depth int, indent, branch string) {
		placed[s.SpanID] = true
		d.Lines = append(d.Lines, line{span: s, branch: indent + branch, Depth: depth})
		switch branch {
		case "├ ":
			indent += "│ "
		case "└ ":
			indent += "  "
		}
		list := slices.DeleteFunc(children[s.SpanID], func(child span) bool { return placed[child.SpanID] })
		for i, child := range list {
			branch := "├ "
			if i == len(list)-1 {
				branch = "└ "
			}
			place(child, depth+1, indent, branch)
		}
	}
	for _, s := range children[""] {
		place(s, 0, "", "")
	}
	for _, s := range spans {
		if !placed[s.SpanID] { // a cycle of parents, which only a broken client makes
			place(s, 0, "", "")
		}
	}
	d.scale(spans)
	return d
}

// scale computes the bars of spans, which are sorted by time.
func (d *drawing) scale(spans []span) {
	d.Start, d.Total = spans[0].Timestamp, 1
	for _, s := range spans {
		d.Total = max(d.Total, s.Timestamp.Sub(d.Start)+s.Took())
	}
	for i := range d.Lines {
		l := &d.Lines[i]
		percent := func(part time.Duration) float64 { return 100 * float64(part) / float64(d.Total) }
		l.Begins = l.Timestamp.Sub(d.Start)
		l.Width = max(percent(l.Took()), 0.4) // otherwise it would be invisible
		l.Left = min(percent(l.Begins), 100-l.Width)
	}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
