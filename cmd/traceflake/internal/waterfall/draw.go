package waterfall

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/traceflake/traceflake/traceid"
)

// Options say how a trace is drawn.
type Options struct {
	Width int  // columns; at least [MinWidth] are used
	Color bool // errors are red, by ANSI escape codes
	Spans int  // how many spans are drawn at most, and then as many failed ones; 0 draws all
}

// MinWidth is the least number of columns in which bars can be read.
const MinWidth = 60

// Draw writes the trace: some lines about all of it, and a line for each span, above its message
// if it failed, and its details. A line begins with "!" if its span failed, and with "~" if the
// span is late: it starts more than an hour before or after the time of the trace ID.
func (t *Trace) Draw(w io.Writer, o Options) error {
	p := t.plan(t.ordered(), max(o.Width, MinWidth))
	shown := len(p.spans)
	if o.Spans > 0 {
		shown = min(shown, o.Spans)
	}
	b := bufio.NewWriter(w)
	t.head(b, p)
	fmt.Fprintf(b, "\n   %s %s %s\n", fit("SERVICE", p.service), fit("SPAN", p.name), p.scale())
	for _, s := range p.spans[:shown] {
		t.draw(b, p, s, o.Color)
	}
	if hidden := p.spans[shown:]; len(hidden) > 0 {
		failed := slices.DeleteFunc(slices.Clone(hidden), func(s span) bool { return !s.failed })
		fmt.Fprintf(b, "   … and %s more, of which %d failed\n", count(len(hidden), "span"),
			len(failed))
		for _, s := range failed[:min(len(failed), o.Spans)] {
			t.draw(b, p, s, o.Color)
		}
	}
	return b.Flush()
}

// draw writes the line of a span, its message and its details.
func (t *Trace) draw(w io.Writer, p plan, s span, color bool) {
	const indent = "     "
	lines := []string{t.line(p, s)}
	if s.message != "" {
		lines = append(lines, indent+s.message)
	}
	if color && s.failed {
		for i, line := range lines {
			lines[i] = "\x1b[31m" + line + "\x1b[0m"
		}
	}
	for _, detail := range s.details {
		lines = append(lines, indent+detail)
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// plan is where the parts of the lines stand.
type plan struct {
	spans              []span
	start, end         int64 // of the trace, in Unix nanoseconds
	service, name, bar int   // columns
}

// length is the width of the column of durations.
const length = 8

func (t *Trace) plan(spans []span, width int) plan {
	p := plan{spans: spans, start: math.MaxInt64, end: math.MinInt64}
	const (
		// columns of a service, and the part of the line that it takes at most
		widest, share = 20, 5
		gaps          = 6 // marks and spaces
	)
	for _, s := range spans {
		p.start, p.end = min(p.start, s.start), max(p.end, s.end)
		p.service = max(p.service, runewidth.StringWidth(s.service))
		p.name = max(p.name, s.depth+runewidth.StringWidth(s.name))
	}
	p.service = max(len("SERVICE"), min(p.service, widest, width/share))
	p.name = max(len("SPAN"), min(p.name, (width-p.service)*2/share))
	p.bar = width - p.service - p.name - length - gaps
	return p
}

// head writes what is known of the whole trace.
func (t *Trace) head(w io.Writer, p plan) {
	services := make(map[string]bool)
	var failed, lates int
	for _, s := range p.spans {
		services[s.service] = true
		if s.failed {
			failed++
		}
		if t.late(s) {
			lates++
		}
	}
	fmt.Fprintf(w, "trace %s\n  %s in %s, %s\n", t.id, count(len(p.spans), "span"),
		count(len(services), "service"), short(between(p.start, p.end)))
	if failed > 0 {
		fmt.Fprintf(w, "  ! %s failed\n", count(failed, "span"))
	}
	of, first := traceid.Time(t.id), time.Unix(0, p.start).UTC()
	if !t.timed() {
		fmt.Fprintf(w, "  first span  %s\n", stamp(first))
		return
	}
	if lates > 0 {
		fmt.Fprintf(w, "  ~ %s over an hour from the ID's time\n", count(lates, "span"))
	}
	fmt.Fprintf(w, "  ID's time   %s\n", stamp(of))
	side := "after"
	if first.Before(of) {
		side = "before"
	}
	fmt.Fprintf(w, "  first span  %s, %s %s it\n", stamp(first), short(first.Sub(of).Abs()), side)
	if lates == len(p.spans) {
		fmt.Fprint(w, "  the time in the ID is not that of the spans: "+
			"another system generated the ID, or a clock is wrong\n")
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// scale is the line above the bars: the times at their left and right ends.
func (p plan) scale() string {
	end := short(between(p.start, p.end))
	return fit("0s", p.bar-len(end)) + end + " " + "DURATION"
}

// line is the line of a span, without the newline.
func (t *Trace) line(p plan, s span) string {
	mark, tilde := " ", " "
	if s.failed {
		mark = "!"
	}
	if t.late(s) {
		tilde = "~"
	}
	indent := strings.Repeat(" ", s.depth)
	if deepest := p.name / 2; s.depth > deepest { // the name keeps half of its column
		indent = fmt.Sprintf("%*s", deepest, fmt.Sprintf("%d ", s.depth))
	}
	return fmt.Sprintf("%s%s %s %s %s %*s", mark, tilde, fit(s.service, p.service),
		fit(indent+s.name, p.name), p.barOf(s), length, short(between(s.start, s.end)))
}

// barOf draws when s ran. A bar has at least one column, and ends within the column that its end
// falls in.
func (p plan) barOf(s span) string {
	column := func(at int64) int {
		whole := max(float64(between(p.start, p.end)), 1)
		return int(float64(between(p.start, at)) / whole * float64(p.bar))
	}
	from := min(column(s.start), p.bar-1)
	to := min(max(column(s.end), from+1), p.bar)
	return strings.Repeat(" ", from) + strings.Repeat("█", to-from) +
		strings.Repeat(" ", p.bar-to)
}
