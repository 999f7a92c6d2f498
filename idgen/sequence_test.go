package idgen

import (
	"sync"
	"testing"

	"github.com/traceflake/traceflake/internal/layout"
)

// Goroutines that take clear halves at the same time take different ones.
func TestConcurrentTakes(t *testing.T) {
	const goroutines, each = 4, 500_000
	var s sequence
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				s.take(layout.EpochMillis, 1)
			}
		})
	}
	wg.Wait()
	if taken := s.next.Load() - 1; taken != goroutines*each {
		t.Errorf("%d were taken, want %d", taken, goroutines*each)
	}
}
