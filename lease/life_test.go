package lease_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// restorable simulates restores of the Keeper's machine: one whenever life grows.
func (b *bench) restorable() (life *uint64) {
	life = new(uint64)
	*life = 1
	b.SetMachine(func() uint64 { return *life })
	return life
}

// After a restore from a snapshot, a machine neither makes IDs of an earlier grant nor returns it:
// the original machine may continue with it.
func TestRestoredMachine(t *testing.T) {
	for name, notice := range map[string]func(*bench){
		"by an ID": func(b *bench) { b.wantError(lease.ErrNoLease) },
		"by a step": func(b *bench) {
			if wait := b.Step(b.t.Context()); wait > lease.LookEvery {
				b.t.Errorf("the next step is in %s", wait)
			}
		},
		"by Close": func(b *bench) {
			b.Seal()
			if err := b.GiveBackAll(b.t.Context()); err != nil {
				b.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			life := b.restorable()
			b.pass(0)
			b.mustOne()
			before := b.block(0)
			*life++
			notice(b)
			if got := b.Drops(); !maps.Equal(got, map[string]int64{"restored": 1}) || b.Generation() != 1 {
				t.Errorf("dropped %v, generation %d", got, b.Generation())
			}
			if after := b.block(0); after != before {
				t.Errorf("the dropped block was changed to %+v", after)
			}
			if name == "by Close" {
				return
			}
			b.pass(lease.Reseeding)
			if p := b.mustOne(); p.Node == 0 {
				t.Error("the Keeper continues with the same block")
			}
			if len(b.reports) != 1 || !errors.Is(b.reports[0], lease.ErrCloned) {
				t.Errorf("reported %v", b.reports)
			}
		})
	}
}

// A Keeper that is told of a restore makes no ID with an earlier grant once Restored has returned,
// does not give the grant back, and takes another.
func TestRestored(t *testing.T) {
	b := newBench(t)
	b.pass(0)
	b.mustOne()
	before := b.block(0)
	for n := uint64(1); n <= 2; n++ {
		b.Restored()
		if b.Generation() != n {
			t.Errorf("generation %d, want %d", b.Generation(), n)
		}
		b.wantError(lease.ErrNoLease)
		b.pass(2 * lease.Reseeding)
		if p := b.mustOne(); p.Node == 0 {
			t.Error("the Keeper continues with the same block")
		}
	}
	if got := b.Drops(); !maps.Equal(got, map[string]int64{"restored": 2}) || b.block(0) != before {
		t.Errorf("dropped %v; the first block is %+v, was %+v", got, b.block(0), before)
	}
}

// Each reservation checks the machine, not only the first one in a second.
func TestRestoredWithinASecond(t *testing.T) {
	b := newBench(t)
	life := b.restorable()
	b.pass(0)
	b.mustOne()
	b.mustOne()
	*life++
	if id, err := b.Next(); err == nil {
		t.Errorf("made %+v", b.codec.Decode(id))
	}
}

// A grant is not used if the machine was restored after its Acquire began.
func TestRestoredDuringAcquire(t *testing.T) {
	b := newBench(t)
	life := b.restorable()
	once := true
	b.during("acquire", func() {
		if once {
			*life++
		}
		once = false
	})
	b.pass(2 * lease.Reseeding)
	if p := b.mustOne(); p.Node == 0 {
		t.Error("made an ID of the grant that was requested before")
	}
	if got := b.Drops(); !maps.Equal(got, map[string]int64{"restored": 1}) {
		t.Errorf("dropped %v", got)
	}
}

// The generation of the machine may also fall: a restore of another snapshot.
func TestRestoredToALowerGeneration(t *testing.T) {
	b := newBench(t)
	life := b.restorable()
	*life = 7
	b.SetMachine(func() uint64 { return *life })
	b.pass(0)
	b.mustOne()
	*life = 3
	b.wantError(lease.ErrNoLease)
	drawn := 0
	b.SetNonces(func() string { drawn++; return lease.NewNonce() })
	b.Step(t.Context())
	if drawn > 0 {
		t.Error("a nonce was drawn at once")
	}
	b.pass(lease.Reseeding)
	if p := b.mustOne(); p.Node == 0 {
		t.Error("the Keeper continues with the same block")
	}
}

// copies returns copies of a Keeper on a machine that is just restored. Until kernels learn of it
// they draw the same nonces, as the original does, which was not restored.
func (b *bench) copies(life *uint64, store lease.Store) (original *bench, copies []*bench) {
	b.t.Helper()
	restored := b.clock.Elapsed()
	var same []string
	copied := func() *bench {
		c := b.copied()
		c.SetStore(store)
		drawn := 0
		c.SetNonces(func() string {
			if b.clock.Elapsed() >= restored+400*time.Millisecond {
				return lease.NewNonce()
			}
			for drawn++; len(same) < drawn; {
				same = append(same, lease.NewNonce())
			}
			return same[drawn-1]
		})
		return c
	}
	original, copies = copied(), []*bench{copied(), copied()}
	before := *life
	original.SetMachine(func() uint64 { return before })
	*life++
	return original, copies
}

// The kernel is notified of a restore a moment after the machine resumes. Until then all copies
// draw the same nonces, and so does the original. None of them makes an ID of another.
func TestCopiesDrawTheSameNonces(t *testing.T) {
	for name, lost := range map[string]bool{"": false, "a response is lost": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			life := b.restorable()
			b.pass(time.Second)
			// The store reads a block before it writes it. If a write is refused, and the block has
			// its nonce, it cannot know whose write that was.
			original, copies := b.copies(life, hooked{b.store, func(c call, do func(call) (lease.Grant, error)) (lease.Grant, error) {
				g, err := do(c)
				if stored, getErr := b.store.Get(c.ctx, c.grant.Node); errors.Is(err, lease.ErrLost) && c.op == "renew" &&
					getErr == nil && stored.Nonce == c.request.Nonce {
					err = errors.New("refused, and may have been written")
				}
				return g, err
			}})
			for _, c := range copies {
				c.wantError(lease.ErrNoLease)
			}
			original.borrow() // it asks for another block, with a nonce that the copies would draw
			ids := made{}
			for i := range 300 {
				for j, c := range append(copies, original) {
					if lost && i < 20 && j == i%2 {
						b.store.set(nil, errAway)
					}
					c.Step(t.Context())
					b.store.set(nil, nil)
					ids.fill(t, "one of the copies", c)
				}
				b.clock.Add(50 * time.Millisecond)
			}
			for _, c := range append(copies, original) {
				c.mustOne()
			}
		})
	}
}

// Changes of the machine during a call to the store count.
func TestSuspendedDuringAcquire(t *testing.T) {
	b := newBench(t)
	once := true
	b.during("acquire", func() {
		if once {
			b.clock.Step(5 * time.Second)
		}
		once = false
	})
	b.Step(t.Context())
	if p, err := b.one(); err == nil && p.Node == 0 {
		t.Errorf("made an ID of the grant: %+v", p)
	}
	if got := b.Drops(); !maps.Equal(got, map[string]int64{"clock_gap": 1}) {
		t.Errorf("dropped %v", got)
	}
}

// twoBlocks returns a Keeper that holds two blocks, and its machine's life.
func twoBlocks(t *testing.T) (b *bench, life *uint64) {
	t.Helper()
	b = newBench(t, lease.WithMaxBlocks(2))
	life = b.restorable()
	b.pass(0)
	ids := make([]randflake.ID, 1<<17)
	for range 2 {
		_, _, _ = b.Fill(ids)
		b.Step(t.Context())
	}
	if len(b.Terms()) != 2 {
		t.Fatalf("%d blocks are held, want 2", len(b.Terms()))
	}
	return b, life
}

// With a stepped clock no grant is renewed, even right after the step.
func TestSteppedClockDoesNotRenew(t *testing.T) {
	b, _ := twoBlocks(t)
	renewals, before := 0, b.block(1)
	b.during("renew", func() {
		renewals++
		b.clock.Step(-2 * time.Second)
	})
	b.clock.Add(5 * time.Second)
	b.Step(t.Context())
	if renewals != 1 {
		t.Errorf("%d renewals were requested, want only the first", renewals)
	}
	if after := b.block(1); after != before {
		t.Errorf("the second block was changed to %+v", after)
	}
}

// If the machine is restored during Close, nothing more is returned, not even a grant that is
// dropped in the meantime.
func TestRestoredDuringClose(t *testing.T) {
	for name, happen := range map[string]func(b *bench, second *lease.Term, life *uint64){
		"restored": func(_ *bench, _ *lease.Term, life *uint64) { *life++ },
		"dropped":  func(b *bench, second *lease.Term, _ *uint64) { b.Drop(second) },
	} {
		t.Run(name, func(t *testing.T) {
			b, life := twoBlocks(t)
			before, second := b.block(1), b.Terms()[1]
			b.during("release", func() { happen(b, second, life) })
			b.Seal()
			if err := b.GiveBackAll(t.Context()); err != nil {
				t.Error(err)
			}
			if after := b.block(1); after != before {
				t.Errorf("the second block was changed to %+v", after)
			}
		})
	}
}

// A store that grants expired leases is not called continuously.
func TestExpiredGrants(t *testing.T) {
	b := newBench(t)
	calls := 0
	b.asking(func(r *lease.Request) {
		calls++
		r.Now = r.Now.Add(-time.Hour)
	})
	b.pass(10 * time.Second)
	b.wantError(lease.ErrNoLease)
	if calls == 0 || calls > 50 {
		t.Errorf("%d calls in 10 s", calls)
	}
}

// A grant that arrives during Close makes no IDs, and is returned.
func TestAcquireDuringClose(t *testing.T) {
	b := newBench(t)
	b.during("acquire", b.Seal)
	b.Step(t.Context())
	b.wantError(lease.ErrClosed)
	if len(b.Terms()) != 1 {
		t.Fatalf("%d grants arrived, want 1", len(b.Terms()))
	}
	if id, err := b.Terms()[0].Generator().Next(); !errors.Is(err, randflake.ErrSealed) {
		t.Errorf("the generator made %v, %v", id, err)
	}
	if err := b.GiveBackAll(t.Context()); err != nil {
		t.Error(err)
	}
	if block := b.block(0); !block.GrantedUntil.Equal(block.Start) {
		t.Errorf("the block is %+v", block)
	}
}

// The wall clock and the monotonic clock of an idle process drift apart by seconds within days;
// that is not a step.
func TestDriftIsNotAStep(t *testing.T) {
	for _, drift := range []float64{1e-4, -1e-4} {
		b := newBench(t, lease.WithTTL(lease.MaxTTL))
		b.clock.drift = drift
		b.pass(72 * time.Hour)
		b.mustOne()
		if b.Generation() != 0 || b.store.acquires != 1 {
			t.Errorf("drift %g: dropped %v, %d grants", drift, b.Drops(), b.store.acquires)
		}
	}
}

// The store keeps the block's owner, for operators.
func TestOwner(t *testing.T) {
	b := newBench(t, lease.WithOwner("web-7/größe"))
	b.pass(20 * time.Second)
	if got := b.block(0); got.Owner != "web-7/größe" || got.Version < 3 {
		t.Errorf("the block is %+v", got)
	}
	b = newBench(t)
	b.pass(0)
	if got := b.block(0).Owner; strings.Count(got, "/") != 2 {
		t.Errorf("the default is %q", got)
	}
}
