//go:build nolinkname

package idgen

import "sync"

// locals is the portable twin of the type in percpu.go.
type locals struct{ spare *sync.Pool }

type pinned = *local

func (s *locals) start() { s.spare = new(sync.Pool) }

func procPin() int                       { return 0 }
func (s *locals) here(int) pinned        { return s.unused() }
func (s *locals) unpin(l pinned)         { s.attach(l, true) }
func (s *locals) detach(l pinned) *local { return l }

func (s *locals) attach(l *local, stay bool) {
	if !stay {
		l.run, l.version = run{}, ^l.version // so that it does not hold
	}
	if s.spare != nil {
		s.spare.Put(l)
	}
}
