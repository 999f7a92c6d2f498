//go:build race && !nolinkname

package idgen

import (
	"runtime"
	"unsafe"
)

// The race detector does not know that goroutines pinned to one processor run one after the other.

func acquire(s pinned) { runtime.RaceAcquire(unsafe.Pointer(s)) }
func release(s pinned) { runtime.RaceRelease(unsafe.Pointer(s)) }
