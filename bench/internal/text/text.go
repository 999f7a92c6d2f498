// Package text writes figures and tables for reports.
package text

import (
	"math"
	"strconv"
	"strings"
)

// Ns formats nanoseconds, or returns a dash if they were not measured.
func Ns(ns float64) string {
	switch {
	case math.IsNaN(ns):
		return "–"
	case math.Abs(ns) < 100:
		return strconv.FormatFloat(ns, 'f', 1, 64) + " ns"
	default:
		return strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
	}
}

// Table formats a Markdown table; the first row is its header.
func Table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}
