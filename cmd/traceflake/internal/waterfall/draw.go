package waterfall

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/traceflake/traceflake/traceid"
)

// Options say how a trace is drawn.
type Options struct {
	Width int  // columns; at least 60 are used
	Color bool // errors are red, by ANSI escape codes
	Spans int  // how many spans are drawn at most; 0 draws all
}

// Draw writes the trace: some lines about all of it, and a line for each span, above its message
// if it failed, and its details. A line begins with "!" if its span failed. The attributes of a
// resource are drawn once.
func (t *Trace) Draw(w io.Writer, o Options) error {
	spans := t.ordered()
	l := layoutOf(spans, max(o.Width, 60))
	b := bufio.NewWriter(w)
	t.head(b, l, spans)
	shown := len(spans)
	if o.Spans > 0 {
		shown = min(shown, o.Spans)
	}
	resources := make(map[string]bool)
	for _, s := range spans[:shown] {
		resource := strings.Join(s.resource, "\n")
		if !resources[resource] && resource != "" {
			s.details = append(append(s.details, "resource:"), indented(s.resource)...)
			resources[resource] = true
		}
		l.draw(b, s, o.Color)
	}
	if shown < len(spans) {
		fmt.Fprintf(b, "  … and %s more\n", count(len(spans)-shown, "span"))
	}
	return b.Flush()
}

// layout is where the parts of the lines stand.
type layout struct {
	start, end         int64 // of the trace, in Unix nanoseconds
	service, name, bar int   // columns
}

// length is the width of the column of durations.
const length = 8

func layoutOf(spans []span, width int) layout {
	const service, share, gaps = 16, 3, 5
	l := layout{math.MaxInt64, math.MinInt64, service, width / share, 0}
	for _, s := range spans {
		l.start, l.end = min(l.start, s.start), max(l.end, s.end)
	}
	l.bar = width - l.service - l.name - length - gaps
	return l
}

// head writes what is known of the whole trace, and the line above the spans.
func (t *Trace) head(w io.Writer, l layout, spans []span) {
	services, failed := make(map[string]bool), 0
	for _, s := range spans {
		services[s.service] = true
		if s.failed {
			failed++
		}
	}
	whole := short(between(l.start, l.end))
	fmt.Fprintf(w, "trace %s\n  %s in %s, %s\n", t.id, count(len(spans), "span"),
		count(len(services), "service"), whole)
	if failed > 0 {
		fmt.Fprintf(w, "  ! %s failed\n", count(failed, "span"))
	}
	first := time.Unix(0, l.start)
	fmt.Fprintf(w, "  first span  %s", stamp(first))
	if [8]byte(t.id[:8]) != [8]byte{} { // an ID of 64 bits has no time
		of := traceid.Time(t.id)
		side := "after"
		if first.Before(of) {
			side = "before"
		}
		fmt.Fprintf(w, ", %s %s the ID's time %s", short(first.Sub(of).Abs()), side, stamp(of))
	}
	fmt.Fprintf(w, "\n\n  %s %s %s%s DURATION\n", fit("SERVICE", l.service), fit("SPAN", l.name),
		fit("0s", l.bar-len(whole)), whole)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// draw writes the line of a span, its message and its details.
func (l layout) draw(w io.Writer, s span, color bool) {
	mark, red, plain := " ", "", ""
	if s.failed {
		mark = "!"
	}
	if s.failed && color {
		red, plain = "\x1b[31m", "\x1b[0m"
	}
	indent := strings.Repeat(" ", s.depth)
	if deepest := l.name / 2; s.depth > deepest { // the name keeps half of its column
		indent = fmt.Sprintf("%*s", deepest, fmt.Sprintf("%d ", s.depth))
	}
	fmt.Fprintf(w, "%s%s %s %s %s %*s%s\n", red, mark, fit(s.service, l.service),
		fit(indent+s.name, l.name), l.barOf(s), length, short(between(s.start, s.end)), plain)
	for _, line := range s.message {
		fmt.Fprintf(w, "    %s%s%s\n", red, line, plain)
	}
	for _, line := range s.details {
		fmt.Fprintf(w, "    %s\n", line)
	}
}

// barOf draws when s ran. A bar has at least one column, and ends within the column that its end
// falls in.
func (l layout) barOf(s span) string {
	column := func(at int64) int {
		whole := max(float64(between(l.start, l.end)), 1)
		return int(float64(between(l.start, at)) / whole * float64(l.bar))
	}
	from := min(column(s.start), l.bar-1)
	to := min(max(column(s.end), from+1), l.bar)
	return strings.Repeat(" ", from) + strings.Repeat("█", to-from) +
		strings.Repeat(" ", l.bar-to)
}
