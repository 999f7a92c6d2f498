package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/traceflake/traceflake/traceid"
)

// waterfall draws a trace: one line per span, children below their parents, with a bar for the
// time in which it ran.
func (s *screen) waterfall(t found) {
	rows := arrange(t.spans)
	start, total := extent(rows)
	names, services := 0, map[string]int{}
	for _, r := range rows {
		names = max(names, utf8.RuneCountInString(r.label()))
		if _, ok := services[r.ServiceName]; !ok {
			services[r.ServiceName] = len(services)
		}
	}
	service := 0
	for name := range services {
		service = max(service, len(name))
	}
	names = max(min(names, s.width-service-14-10), 8) // leaves room for bars on a narrow terminal
	cells := max(s.width-service-names-14, 10)

	s.printf("\n")
	for _, r := range rows {
		colour := []style{blue, magenta}[services[r.ServiceName]%2]
		bar, note := colour, ""
		if r.failed() {
			bar, note = failed, " "+r.StatusMessage
		}
		left := int(int64(cells) * int64(r.Timestamp.Sub(start)) / int64(total))
		left = min(left, cells-1)
		long := min(max(int(int64(cells)*int64(r.Duration)/int64(total)), 1), cells-left)
		s.printf("%s  %s %9s  %s%s%s\n",
			s.paint(colour, fmt.Sprintf("%-*s", service, r.ServiceName)), pad(r.label(), names), milliseconds(time.Duration(r.Duration)),
			strings.Repeat(" ", left), s.paint(bar, strings.Repeat("━", long)), s.paint(failed, note))
	}
	s.printf("\n%d spans in %s.\n", len(rows), milliseconds(total))
	if made := traceid.Time(t.id); t.dated {
		s.printf("The ID was made at %s; the first span began %s later. Decoded: %s.\n", made.Format("2006-01-02 15:04:05.000 MST"), milliseconds(start.Sub(made)), t.decoded)
	}
	s.printf("\n")
	for _, c := range t.costs {
		s.costs(c)
	}
	s.printf("  %s\n\n", t.measured)
}

// line is a span and its place in the tree.
type line struct {
	span
	branch string
	depth  int
}

func (l line) label() string { return l.branch + l.SpanName }

func (s span) failed() bool { return isError(s.StatusCode) }

// isError reports whether a status is an error, as any version of the exporter writes it.
func isError(status string) bool { return status == "Error" || status == "STATUS_CODE_ERROR" }

// extent returns when the first span began and how long it took until the last one ended.
func extent(lines []line) (start time.Time, total time.Duration) {
	var end time.Time
	for _, l := range lines {
		if stop := l.Timestamp.Add(time.Duration(l.Duration)); end.Before(stop) {
			end = stop
		}
		if start.IsZero() || l.Timestamp.Before(start) {
			start = l.Timestamp
		}
	}
	return start, max(end.Sub(start), 1)
}

// arrange puts children below their parents, each in order of time. A span whose parent is not
// stored, such as an app's, is at the top level.
func arrange(spans []span) []line {
	stored := make(map[string]bool, len(spans))
	for _, s := range spans {
		stored[s.SpanID] = true
	}
	children := make(map[string][]span)
	for _, s := range spans {
		parent := s.ParentSpanID
		if !stored[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	lines := make([]line, 0, len(spans))
	placed := make(map[string]bool, len(spans))
	var place func(s span, depth int, indent, branch string)
	place = func(s span, depth int, indent, branch string) {
		placed[s.SpanID] = true
		lines = append(lines, line{s, indent + branch, depth})
		switch branch {
		case "├ ":
			indent += "│ "
		case "└ ":
			indent += "  "
		}
		list := slices.DeleteFunc(children[s.SpanID], func(child span) bool { return placed[child.SpanID] })
		byTime(list)
		for i, child := range list {
			if i == len(list)-1 {
				place(child, depth+1, indent, "└ ")
			} else {
				place(child, depth+1, indent, "├ ")
			}
		}
	}
	byTime(children[""])
	for _, s := range children[""] {
		place(s, 0, "", "")
	}
	for _, s := range spans {
		if !placed[s.SpanID] { // a cycle of parents, which only a broken client makes
			place(s, 0, "", "")
		}
	}
	return lines
}

func byTime(spans []span) {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.SpanID, b.SpanID))
	})
}

// pad pads s with spaces to the width, or truncates it.
func pad(s string, width int) string {
	if runes := []rune(s); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
