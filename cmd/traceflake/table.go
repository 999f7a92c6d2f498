package main

import (
	"bytes"
	"unicode/utf8"
)

// table collects rows of a fixed number of cells and writes them in columns of the necessary
// width. text/tabwriter could do this at several times the cost: inspect may read millions of
// lines.
type table struct {
	columns int
	text    []byte // of all cells
	ends    []int  // of each cell in text
}

// end ends a cell, whose text has been appended to t.text.
func (t *table) end() { t.ends = append(t.ends, len(t.text)) }

func (t *table) add(cells ...string) {
	for _, cell := range cells {
		t.text = append(t.text, cell...)
		t.end()
	}
}

// appendTo appends the table to b, with two spaces between columns.
func (t *table) appendTo(b []byte) []byte {
	widths := make([]int, t.columns)
	sizes := make([]int, len(t.ends))
	start := 0
	for i, end := range t.ends {
		sizes[i] = utf8.RuneCount(t.text[start:end])
		widths[i%t.columns] = max(widths[i%t.columns], sizes[i])
		start = end
	}
	start = 0
	for i, end := range t.ends {
		b = append(b, t.text[start:end]...)
		start = end
		if column := i % t.columns; column < t.columns-1 {
			b = append(b, spaces[:min(widths[column]-sizes[i]+2, len(spaces))]...)
		} else {
			b = append(b, '\n')
		}
	}
	return b
}

var spaces = bytes.Repeat([]byte(" "), 256)
