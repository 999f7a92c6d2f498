//go:build nolinkname

package idgen

import "sync"

// locals is the portable twin of the type in local.go.
type locals struct{ spare sync.Pool }

func (s *locals) start()                      {}
func (s *locals) pin() (*local, int)          { return spareOf(&s.spare), 0 }
func (s *locals) unpin(l *local, _ int)       { s.put(l) }
func (s *locals) take(l *local, _ int) *local { return l }
func (s *locals) put(l *local)                { s.spare.Put(l) }
