package waterfall

import (
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Printable replaces what a terminal would not print but obey.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
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
