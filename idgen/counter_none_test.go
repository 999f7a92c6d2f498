//go:build !(amd64 || arm64) || purego || nocounter

package idgen

import (
	"testing"
	"time"
)

// Without a counter the clock is read for each trace ID.
func TestNoCounter(t *testing.T) {
	if systemCounter().read != nil || !New().clock.wrong.Load() {
		t.Error("a counter was found")
	}
	c := newClock(noon)
	g := c.counting(noCounter)
	const calls = 100
	for range calls {
		c.pass(time.Nanosecond)
		if late := c.late(t, g); late != 0 {
			t.Errorf("late by %v", late)
		}
	}
	if c.reads < calls {
		t.Errorf("the clock was read %d times for %d trace IDs", c.reads, calls)
	}
}
