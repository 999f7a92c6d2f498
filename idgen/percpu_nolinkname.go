//go:build nolinkname

package idgen

import "sync"

// locals is the portable twin of the type in percpu.go.
type locals struct{ spare spare }

type pinned = *local

func (l *local) owner() *local { return l }

func (s *locals) start() { s.spare = spare{new(sync.Pool)} }

func procPin() int                       { return 0 }
func (s *locals) here(int) pinned        { return s.spare.get() }
func (s *locals) unpin(l pinned)         { s.spare.put(l) }
func (s *locals) detach(l pinned) *local { return l }

func (s *locals) attach(l *local, stay bool) {
	if !stay {
		l.run, l.version = run{}, ^l.version // so that it does not hold
	}
	s.spare.put(l)
}
