package lease_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Tests of Keepers that hold several blocks.

// The first block has borrowed all that it may, the second only some. The third block is used as
// soon as the second has borrowed again.
func TestTurns(t *testing.T) {
	b := newBusy(t, 3)
	for _, want := range []uint32{1, 2, 2, 2} {
		b.wantNode(want)
	}
	b.Drop(b.Terms()[2])
	if id, err := b.Next(); err != nil || testCodec.Decode(id).Node != 1 {
		t.Errorf("after the third block was dropped, Next returns %+v, %v", testCodec.Decode(id), err)
	}
}

// A block is busy if it borrowed in this second or the one before.
func TestBusyForASecond(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 2, time.Second: 2, 2 * time.Second: 1} {
		b := newHeld(t)
		b.borrow()
		b.clock.Add(after)
		b.Step(t.Context())
		if got := len(b.Terms()); got != want {
			t.Errorf("%s after borrowing, %d blocks are held, want %d", after, got, want)
		}
	}
}

// Borrowing wakes the Keeper once a second, and a drop wakes it at once; other errors do not.
func TestWokenOnceASecond(t *testing.T) {
	b := newHeld(t, lease.WithMaxBlocks(1))
	b.second()
	if _, err := b.Next(); err != nil {
		t.Fatal(err)
	}
	if len(b.Kick()) != 1 {
		t.Fatal("the first borrowing does not wake the Keeper")
	}
	<-b.Kick()
	b.mustOne()
	if len(b.Kick()) != 0 {
		t.Error("the Keeper is woken again in the same second")
	}
	b.clock.Add(12 * time.Second)
	b.wantError(randflake.ErrLeaseExpired)
	if len(b.Kick()) != 0 {
		t.Error("the end of the lease wakes the Keeper as if it were busy")
	}
	b.Drop(b.Terms()[0])
	if len(b.Kick()) != 1 {
		t.Error("a drop does not wake the Keeper")
	}
}

// A block is returned at the first renewal at least half a TTL after the last borrowing. A failure
// is reported.
func TestReturnsBlocksAfterHalfATTL(t *testing.T) {
	for _, fails := range []bool{false, true} {
		b := newBusy(t, 2)
		b.pass(6 * time.Second)
		if got := b.Published(); got != 2 {
			t.Fatalf("%d blocks are held after the first renewal, want 2", got)
		}
		b.wantReports()
		if fails {
			b.during("release", func() { b.store.set(errAway, nil) })
		}
		b.pass(5 * time.Second)
		if got := b.Published(); got != 1 {
			t.Errorf("%d blocks are held after the second, want 1", got)
		}
		if released := b.block(0).Owner == ""; released == fails {
			t.Errorf("fails: %t, the block is %+v", fails, b.block(0))
		}
		if fails && (len(b.reports) == 0 || !errors.Is(b.reports[0], errAway) || !strings.Contains(b.reports[0].Error(), "release")) ||
			!fails && len(b.reports) > 0 {
			t.Errorf("fails: %t, reported %v", fails, b.reports)
		}
	}
}

// Only blocks still held count: if the third block is dropped while the first is returned, the
// second is renewed.
func TestKeepsTheLastBlock(t *testing.T) {
	b := newBusy(t, 3)
	terms := slices.Clone(b.Terms())
	b.pass(6 * time.Second) // renewed
	b.during("release", func() { b.Drop(terms[2]) })
	b.clock.Add(6 * time.Second)
	b.Step(t.Context())
	if !terms[0].Over() || terms[1].Over() || !terms[2].Over() {
		t.Errorf("over: %v, %v, %v, want the second to continue", terms[0].Over(), terms[1].Over(), terms[2].Over())
	}
}

// Events during a renewal decide whether the next block is renewed. With a stepped clock none is.
func TestRenewsOnlyRemainingGrants(t *testing.T) {
	for name, happen := range map[string]func(b *bench, cancel func()){
		"the second is dropped": func(b *bench, _ func()) { b.Drop(b.Terms()[1]) },
		"it is closed":          func(_ *bench, cancel func()) { cancel() },
		"the clock is stepped":  func(b *bench, _ func()) { b.clock.Step(-2 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBusy(t, 2)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			second := b.block(1)
			b.during("renew", func() { happen(b, cancel) })
			b.clock.Add(5 * time.Second)
			b.Step(ctx)
			if n := len(b.store.asked("renew")); n != 1 {
				t.Errorf("%d renewals, want 1", n)
			}
			b.wantBlock(second)
		})
	}
}

// A grant that is dropped during its renewal is not a failure of the store.
func TestDroppedDuringRenewal(t *testing.T) {
	b := newHeld(t)
	b.once("renew", func() { b.Drop(b.Terms()[0]) })
	b.pass(6 * time.Second)
	b.wantReports(lease.ErrCloned)
}

// A grant that is dropped while another one is acquired is not used again.
func TestDroppedIsNotShown(t *testing.T) {
	published := -1
	var b *bench
	b = newHeld(t, lease.WithErrorHandler(func(error) { published = b.Published() }))
	b.borrow()
	b.during("acquire", func() { b.Drop(b.Terms()[0]) })
	b.Step(t.Context())
	if published != 1 {
		t.Errorf("%d grants were in use when the drop was reported, want 1", published)
	}
}

// If the machine is restored during Close, nothing more is returned, not even a grant that is
// dropped in the meantime.
func TestRestoredDuringClose(t *testing.T) {
	for name, happen := range map[string]func(b *bench, second *lease.Term){
		"restored": func(b *bench, _ *lease.Term) { *b.life++ },
		"dropped":  func(b *bench, second *lease.Term) { b.Drop(second) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBusy(t, 2)
			before, second := b.block(1), b.Terms()[1]
			b.during("release", func() { happen(b, second) })
			b.close()
			b.wantBlock(before)
		})
	}
}

// An unproven grant does not replace a proven one, and makes no IDs even when that is dropped.
func TestUnprovenIsNotShown(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		b := newBench(t, lease.WithMaxBlocks(2))
		b.SetJitter(func() float64 { return 0 }) // renewals well before the end
		b.pass(0)
		b.borrow()
		b.store.set(nil, errAway)
		b.Step(t.Context()) // asks for another block, and again without an acknowledgement
		b.store.set(nil, nil)
		b.store.on = func(c *call, do func() (lease.Grant, error)) (lease.Grant, error) {
			if c.op == "renew" && c.grant.Node == 1 {
				return lease.Grant{}, errAway
			}
			return do()
		}
		b.pass(2 * time.Second)
		if len(b.Terms()) != 2 || b.Terms()[1].Proven() {
			t.Fatalf("%d terms, want a second, unproven one", len(b.Terms()))
		}
		if !dropped {
			b.pass(3 * time.Second) // the first is renewed
			b.clock.Add(4 * time.Second)
			b.Step(t.Context())
			b.wantNode(0)
			continue
		}
		b.Drop(b.Terms()[0])
		b.Step(t.Context())
		if len(b.Terms()) != 1 || b.Terms()[0].Proven() {
			t.Fatalf("%d terms", len(b.Terms()))
		}
		b.wantError(lease.ErrNoLease)
	}
}
