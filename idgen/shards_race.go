//go:build race && !nolinkname

package idgen

import (
	"runtime"
	"unsafe"
)

// The race detector cannot see that goroutines which are pinned to one
// processor follow each other.

func acquire(s *slot) { runtime.RaceAcquire(unsafe.Pointer(s)) }
func release(s *slot) { runtime.RaceRelease(unsafe.Pointer(s)) }
