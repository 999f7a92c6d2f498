//go:build race

package idgen

import (
	"runtime"
	"unsafe"
)

// The race detector does not know that goroutines pinned to one processor run one after the other.

const raceEnabled = true

func acquire(s *slot) { runtime.RaceAcquire(unsafe.Pointer(s)) }
func release(s *slot) { runtime.RaceRelease(unsafe.Pointer(s)) }
