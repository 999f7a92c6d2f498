package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// bar shows how far a step is, in one line of a terminal.
type bar struct {
	out   io.Writer
	title string
	since time.Time
	last  time.Time
}

func newBar(out io.Writer, title string) *bar {
	return &bar{out: out, title: title, since: time.Now()}
}

func (b *bar) show(n, of int) {
	n = min(n, of)
	if n < of && time.Since(b.last) < 100*time.Millisecond {
		return
	}
	b.last = time.Now()
	const width = 30
	full := width * n / max(of, 1)
	end := ""
	if n == of {
		end = "\n"
	}
	fmt.Fprintf(b.out, "\r%-52s [%s%s] %3d %% %5.0f s%s", b.title, strings.Repeat("=", full), strings.Repeat(" ", width-full),
		100*n/max(of, 1), time.Since(b.since).Seconds(), end)
}
