package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// screen writes output for people: in colour and with progress bars on a terminal, plain
// otherwise. It is safe for concurrent use.
type screen struct {
	io.Writer
	mu       sync.Mutex
	terminal bool
	colour   bool
	width    int
}

func newScreen(w io.Writer) *screen {
	s := &screen{Writer: w, width: 110}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.terminal = os.Getenv("TERM") != "dumb"
		s.colour = s.terminal && os.Getenv("NO_COLOR") == ""
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			s.width = min(width, 160)
		}
	}
	return s
}

func (s *screen) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s, format, args...) // there is nowhere else to report it
}

// phase starts a new part of the output.
func (s *screen) phase(name, format string, args ...any) {
	wipe := ""
	if s.terminal {
		wipe = "\r\x1b[K" // wipes a bar
	}
	s.printf("%s%s %s\n", wipe, s.paint(bold, fmt.Sprintf("%-10s", name)), fmt.Sprintf(format, args...))
}

type style string

const (
	bold    style = "1"
	faint   style = "2"
	failed  style = "31"
	blue    style = "34"
	magenta style = "35"
)

func (s *screen) paint(st style, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// progress is a bar of n steps, drawn on terminals only.
type progress struct {
	screen *screen
	n      int64
	count  atomic.Int64
	stop   chan struct{}
	ended  chan struct{}
}

func (s *screen) progress(n int) *progress {
	p := &progress{screen: s, n: int64(n), stop: make(chan struct{}), ended: make(chan struct{})}
	go p.run()
	return p
}

// add counts n steps. It is safe for concurrent use.
func (p *progress) add(n int) { p.count.Add(int64(n)) }

// done wipes the bar.
func (p *progress) done() {
	close(p.stop)
	<-p.ended
}

func (p *progress) run() {
	defer close(p.ended)
	if !p.screen.terminal {
		return
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	cells := max(min(int64(p.screen.width-15-2*len(strconv.FormatInt(p.n, 10))), 40), 1) // the rest of the line
	for {
		count := min(p.count.Load(), p.n)
		full := int(count * cells / p.n)
		p.screen.printf("\r%11s%s%s %d/%d", "", strings.Repeat("█", full), strings.Repeat("░", int(cells)-full), count, p.n)
		select {
		case <-tick.C:
		case <-p.stop:
			p.screen.printf("\r\x1b[K")
			return
		}
	}
}
