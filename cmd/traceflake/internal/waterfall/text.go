package waterfall

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// printable returns a line in which what a terminal would not print but obey is replaced. Joiners,
// as in many scripts and emoji, only change how their neighbors look.
func printable(line string) string {
	const joiners = "\u200c\u200d"
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r) && !strings.ContainsRune(joiners, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(line, string(unicode.ReplacementChar)))
}

// lines returns the printable lines of a text.
func lines(text string) (all []string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\r\n"), "\n") {
		all = append(all, printable(strings.TrimSuffix(line, "\r")))
	}
	return all
}

func indented(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, "  "+line)
	}
	return all
}

// pairs returns the lines for attributes. A value of several lines, such as a stack trace, begins
// on the next one.
func pairs(attributes map[string]string) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		value := lines(attributes[key])
		if len(value) == 1 {
			all = append(all, printable(key)+" = "+value[0])
			continue
		}
		all = append(append(all, printable(key)+" ="), indented(value)...)
	}
	return all
}

// fit cuts or pads text to a width in columns of a terminal.
func fit(text string, width int) string {
	return runewidth.FillRight(runewidth.Truncate(text, width, "…"), width)
}

// short returns a duration with three significant digits.
func short(d time.Duration) string {
	const most, least, digits = 1000 * time.Second, time.Microsecond, 100
	for unit := most; unit >= least; unit /= 10 {
		if d.Abs() >= unit {
			return d.Round(unit / digits).String()
		}
	}
	return d.String()
}
