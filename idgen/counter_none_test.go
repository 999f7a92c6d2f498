//go:build !(amd64 || arm64) || purego || nocounter

package idgen

import "testing"

// Without a counter the clock is read for each trace ID.
func TestNoCounter(t *testing.T) {
	g := New()
	if systemCounter().read != nil || !g.clock.wrong.Load() {
		t.Error("a counter was found")
	}
	w := newWorld()
	g = New(WithClock(w))
	g.clock.untimed.Store(false)
	w.reads = 0
	const calls = 100
	for range calls {
		w.pass(1)
		if late := w.late(t, g); late != 0 {
			t.Errorf("late by %v", late)
		}
	}
	if w.reads < calls {
		t.Errorf("the clock was read %d times for %d trace IDs", w.reads, calls)
	}
}
