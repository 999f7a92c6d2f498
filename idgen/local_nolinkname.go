//go:build nolinkname

package idgen

import "sync"

// locals is the portable twin of the type in local.go.
type locals struct{ spare sync.Pool }

type pinned struct{ local *local }

func (s *locals) start()               { s.spare.New = func() any { return new(local) } }
func (s *locals) pin() pinned          { return pinned{s.spare.Get().(*local)} }
func (s *locals) unpin(p pinned)       { s.put(p.local) }
func (s *locals) take(p pinned) *local { return p.local }
func (s *locals) put(l *local)         { s.spare.Put(l) }
