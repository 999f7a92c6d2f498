package lease_test

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Tests of machines that are restored or copied, and of clocks that are wrong.

// After a restore from a snapshot, a machine neither generates IDs of an earlier grant nor gives it
// back: the original machine may still use it. Each reservation checks the machine, not only the
// first one in a second.
func TestRestoredMachine(t *testing.T) {
	for name, restore := range map[string]func(*bench){
		"noticed by an ID": func(b *bench) {
			*b.life -= 3 // the snapshot may be an older one
			b.wantError(lease.ErrNoLease)
		},
		"noticed by a step": func(b *bench) {
			*b.life++
			if wait := b.Step(b.t.Context()); wait > lease.LookEvery {
				b.t.Errorf("the next step is in %s", wait)
			}
		},
		"noticed by Close": func(b *bench) {
			*b.life++
			b.close()
		},
		"reported by OnRestore": (*bench).OnRestore,
	} {
		t.Run(name, func(t *testing.T) {
			b := newHeld(t)
			b.mustOne()
			before := b.block(0)
			restore(b)
			b.wantDrops(map[string]int64{"restored": 1})
			b.wantBlock(before)
			if name == "noticed by Close" {
				return
			}
			b.Step(t.Context())
			b.pass(lease.Reseeding - time.Millisecond)
			if n := len(b.store.asked("acquire")); n != 1 {
				t.Errorf("%d Acquires, want none with a nonce that a copy may have", n-1)
			}
			b.pass(time.Millisecond)
			b.wantNode(1)
			b.wantReports(lease.ErrCloned)
		})
	}
}

// A machine that is restored while its Keeper closes, after the generator was sealed, does not give
// the grant back: the original machine may still use it.
func TestRestoredDuringClose(t *testing.T) {
	closing := func() bool { return false }
	b := newHeld(t, lease.WithMachine(func() uint64 {
		if closing() {
			return 8
		}
		return 7
	}))
	closing = b.Term().Over
	before := b.block(0)
	b.close()
	if !closing() {
		t.Fatal("the term is not over")
	}
	b.wantBlock(before)
	if n := len(b.store.asked("release")); n > 0 {
		t.Errorf("%d calls of Release", n)
	}
}

// A grant is not used if the machine was restored, or suspended, after its Acquire began.
func TestChangesDuringAcquire(t *testing.T) {
	for reason, happen := range map[string]func(*bench){
		"restored":  func(b *bench) { *b.life++ },
		"clock_gap": func(b *bench) { b.clock.Step(5 * time.Second) },
	} {
		b := newBench(t)
		b.once("acquire", func() { happen(b) })
		b.Step(t.Context())
		if p, err := b.one(); err == nil {
			t.Errorf("%s: made an ID of the grant that was requested before: %+v", reason, p)
		}
		b.pass(2 * lease.Reseeding)
		b.mustOne()
		b.wantDrops(map[string]int64{reason: 1})
	}
}

// A copy of the process gave the grant back, another goroutine dropped it, and its block is then
// acquired again: no ID is generated twice.
func TestOwnBlockWonAgain(t *testing.T) {
	b, made := newHeld(t), map[randflake.ID]bool{}
	second := func() {
		ids, _ := b.second()
		for _, id := range ids {
			if made[id] {
				t.Fatalf("the ID %+v is made twice", testCodec.Decode(id))
			}
			made[id] = true
		}
	}
	b.clock.Add(time.Second)
	b.mustOne()
	b.clock.Add(time.Second)
	b.releasedByACopy()
	b.takeOthers()
	second()
	second()
	b.Drop(b.Term())
	b.Step(t.Context())
	if g := b.block(0); !g.Start.Equal(testStart.Add(2 * time.Second)) {
		t.Fatalf("the block is %+v, want it granted again", g)
	}
	second()
	b.wantDrops(map[string]int64{"restored": 1})
}

// The lease ends between two readings of the clock, and its block is free again although no process
// returned it: no grant was lost.
func TestOwnBlockWonAtItsEnd(t *testing.T) {
	b := newHeld(t)
	b.takeOthers()
	b.store.set(errAway, nil)
	b.clock.Add(9900 * time.Millisecond)
	b.mustOne()
	b.Step(t.Context())
	b.store.set(nil, nil)
	b.clock.Add(200 * time.Millisecond)
	b.pass(lease.MaxBackoff)
	b.wantDrops(map[string]int64{})
	if p := b.mustOne(); p.Node != 0 {
		t.Errorf("made an ID of node %d and second %s", p.Node, p.Time)
	}
}

// A step of the clock drops the grant before an ID is generated with the new time; the block is not
// given back, because a clone may use it.
func TestClockStep(t *testing.T) {
	for _, d := range []time.Duration{90 * time.Second, -90 * time.Second, 1100 * time.Millisecond,
		-1100 * time.Millisecond} {
		b := newHeld(t)
		b.mustOne()
		before := b.block(0)
		b.clock.Step(d)
		b.wantError(lease.ErrNoLease)
		b.wantError(lease.ErrNoLease)
		b.wantDrops(map[string]int64{"clock_gap": 1})
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

func TestClockBehindDropsTheGrant(t *testing.T) {
	b := newHeld(t)
	// Ahead by borrowing, then twice back by less than a gap.
	for range 3 {
		if _, _, err := b.Term().Generator().Fill(make([]randflake.ID, 1<<17)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		b.clock.Step(-900 * time.Millisecond)
		b.Term().Slew(-900 * time.Millisecond) // as if slewed
	}
	b.wantError(randflake.ErrClockBehind)
	b.pass(0)
	b.wantNode(1)
	b.wantDrops(map[string]int64{"clock_behind": 1})
}

// The wall clock and the monotonic clock of an idle process drift apart by seconds within days;
// that is not a step. So they are compared every minute.
func TestDriftIsNotAStep(t *testing.T) {
	for _, drift := range []float64{1e-4, -1e-4} {
		b := newBench(t, lease.WithTTL(lease.MaxTTL))
		b.clock.drift = drift
		b.pass(72 * time.Hour)
		b.mustOne()
		b.wantDrops(map[string]int64{})
		if n := len(b.store.asked("acquire")); n != 1 {
			t.Errorf("drift %g: %d grants", drift, n)
		}
		if wait := b.Step(t.Context()); wait != lease.LookEvery {
			t.Errorf("the next step is in %s, want %s", wait, lease.LookEvery)
		}
	}
}

// A drop wakes the Keeper at once; refusals do not.
func TestWoken(t *testing.T) {
	b := newHeld(t)
	for range 3 {
		b.second()
	}
	b.wantError(randflake.ErrExhausted)
	if len(b.Kick()) != 0 {
		t.Error("an exhausted second wakes the Keeper")
	}
	b.Drop(b.Term())
	if len(b.Kick()) != 1 {
		t.Error("a drop does not wake the Keeper")
	}
}

// A grant that is dropped during its renewal is not a failure of the store.
func TestDroppedDuringRenewal(t *testing.T) {
	b := newHeld(t)
	b.once("renew", func() { b.Drop(b.Term()) })
	b.pass(6 * time.Second)
	b.wantReports(lease.ErrCloned)
}
