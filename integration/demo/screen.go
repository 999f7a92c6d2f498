package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// screen writes output for people: in colour on a terminal, plain
// otherwise. It is safe for concurrent use.
type screen struct {
	io.Writer
	mu     sync.Mutex
	colour bool
	width  int
}

func newScreen(w io.Writer) *screen {
	s := &screen{Writer: w, width: 110}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.colour = os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == ""
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
	s.printf("%s %s\n", s.paint(bold, fmt.Sprintf("%-10s", name)), fmt.Sprintf(format, args...))
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
