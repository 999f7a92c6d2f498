package lease_test

import (
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// Tests of machines that are restored or copied, and of clocks that are wrong.

// After a restore from a snapshot, a machine generates no IDs of a grant that was requested before:
// the original machine may use it. Each reservation checks the machine, not only the first in a
// second.
func TestRestoredMachine(t *testing.T) {
	for name, restore := range map[string]func(*bench){
		"noticed by an ID": func(b *bench) {
			b.pass(0)
			b.mustOne()
			b.machine -= 3 // the snapshot may be an older one
			b.wantError(lease.ErrNoLease)
		},
		"noticed by a step": func(b *bench) {
			b.pass(0)
			b.machine++
			if wait := b.Step(b.t.Context()); wait > lease.CheckEvery {
				b.t.Errorf("the next step is in %s", wait)
			}
		},
		"reported by OnRestore": func(b *bench) {
			b.pass(0)
			b.OnRestore()
		},
		"during an Acquire": func(b *bench) {
			b.during("acquire", sync.OnceFunc(func() { b.machine++ }))
			b.Step(b.t.Context())
			b.wantError(lease.ErrNoLease)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			restore(b)
			before := b.block(0)
			b.wantDrops("restored")
			b.Step(t.Context())
			b.pass(lease.Reseeding - time.Millisecond)
			if n := len(b.store.asked("acquire")); n != 1 {
				t.Errorf("%d Acquires, want none with a nonce that a copy may have", n-1)
			}
			b.pass(time.Millisecond)
			b.wantNode(1)
			b.wantBlock(before)
			b.wantReports(lease.ErrCloned)
		})
	}
}

// A step of the clock, also during an Acquire, drops the grant before an ID is generated with the
// new time.
func TestClockStep(t *testing.T) {
	for _, d := range []time.Duration{90 * time.Second, -90 * time.Second, 1100 * time.Millisecond,
		-1100 * time.Millisecond} {
		for _, during := range []bool{false, true} {
			b := newBench(t)
			if step := func() { b.clock.Step(d) }; during {
				b.during("acquire", sync.OnceFunc(step))
				b.Step(t.Context())
			} else {
				b.pass(0)
				b.mustOne()
				step()
			}
			before := b.block(0)
			b.wantError(lease.ErrNoLease)
			b.wantDrops("clock_gap")
			b.pass(0)
			p, free := b.mustOne(), d > time.Minute // the old grant is over by this clock
			if !free && p.Node != 1 || !p.Time.Equal(testStart.Add(d).Truncate(time.Second)) {
				t.Errorf("%s: made an ID of node %d, second %s", d, p.Node, p.Time)
			}
			if !free {
				b.wantBlock(before)
			}
		}
	}
}

// The wall clock and the monotonic clock of an idle process drift apart by seconds within days;
// that is not a step. So they are compared every minute.
func TestDriftIsNotAStep(t *testing.T) {
	for _, drift := range []time.Duration{6 * time.Millisecond, -6 * time.Millisecond} {
		b := newBench(t, lease.WithTTL(lease.MaxTTL))
		for range 72 * 60 {
			b.pass(lease.CheckEvery)
			b.clock.Step(drift)
		}
		b.mustOne()
		if n := len(b.store.asked("acquire")); n != 1 {
			t.Errorf("drift %s: %d grants", drift, n)
		}
		if wait := b.Step(t.Context()); wait != lease.CheckEvery {
			t.Errorf("the next step is in %s, want %s", wait, lease.CheckEvery)
		}
	}
}
