package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Tests of a Keeper's first request, which compares secrets, of its last ones, which give back what
// it holds, and of its reports.

// A Keeper acquires nothing without a description of the store, nor before its secret is registered
// there. Then the store is not asked again, not even if another one takes its place for a while.
func TestSecretIsCompared(t *testing.T) {
	b := newBench(t)
	d := lease.Description{ID: lease.NewNonce(), Nodes: few.Nodes, BlockSize: few.BlockSize, LongestTTL: lease.MaxTTL}
	d.Secrets = []string{"0123456789abcdef"}
	if id := lease.NewNonce(); lease.Fingerprint(testCodec, id) == lease.Fingerprint(testCodec, d.ID) || id[:16] == d.ID[:16] || id[16:] == d.ID[16:] {
		t.Errorf("the stores %s and %s know a secret by one fingerprint, or their IDs are not random", id, d.ID)
	}
	b.memory = new(driver.Memory)
	if err := b.memory.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	b.store.Store = b.memory
	b.store.on = func(*call, func() (lease.Grant, error)) (lease.Grant, error) { return lease.Grant{}, errAway }
	b.pass(time.Second)
	b.wantReports(errAway) // once, until a lease is granted
	b.store.on = nil
	b.pass(time.Minute)
	b.wantError(lease.ErrNoLease)
	if err := b.Failure(); !errors.Is(err, lease.ErrWrongSecret) {
		t.Errorf("the failure is %v", err)
	}
	if n, asked := len(b.store.asked("acquire")), len(b.store.asked("describe")); n > 0 || asked < 5 || asked > 80 {
		t.Errorf("%d Acquires and %d Describes in a minute", n, asked)
	}
	if err := b.memory.AddSecret(t.Context(), lease.Fingerprint(testCodec, d.ID)); err != nil {
		t.Fatal(err)
	}
	b.pass(lease.MaxBackoff * 2)
	b.mustOne()

	before := len(b.store.asked("describe"))
	b.store.set(lease.ErrReplaced, nil)
	for end := b.Terms()[0].Grant().End; b.clock.Now().Before(end); b.pass(time.Second) {
		b.mustOne()
	}
	b.pass(time.Minute)
	if err := b.Failure(); !errors.Is(err, lease.ErrReplaced) {
		t.Errorf("the failure is %v", err)
	}
	b.store.set(nil, nil)
	b.pass(lease.MaxBackoff * 2)
	b.mustOne()
	if n := len(b.store.asked("describe")) - before; n > 0 {
		t.Errorf("%d more Describes", n)
	}
}

// A closed Keeper gives back what its last Acquire may have been granted, except the current second:
// even if the same request was refused later, and if it did not arrive, so that a block is granted
// and given back at once.
func TestCloseGivesBackTheBid(t *testing.T) {
	for _, c := range []struct{ first, later error }{{nil, nil}, {nil, lease.ErrNoFreeNode}, {errAway, nil}} {
		option, collect := metered(t)
		b := newBench(t, option)
		b.clock.Add(500 * time.Millisecond)
		b.store.set(c.first, errAway)
		b.next()
		if b.store.set(c.later, nil); c.later != nil {
			b.next()
		}
		b.store.set(nil, nil)
		b.close()
		if g := b.block(0); !g.End.Equal(testStart.Add(time.Second)) || g.Owner != "" {
			t.Errorf("%v, then %v: the block is %+v", c.first, c.later, g)
		}
		if got := collect(); got[requests("acquire", "")] != 1 || got[requests("release", "")] != 1 {
			t.Errorf("%v, then %v: counted %v", c.first, c.later, got)
		}
	}
}

// What a copy may use of an unanswered grant is not given back, neither after a restore nor after a
// suspension. Nothing is requested either if every Acquire was granted or refused.
func TestCloseLeavesTheBid(t *testing.T) {
	for name, happen := range map[string]func(*bench){
		"restored":  func(b *bench) { *b.life++ },
		"told":      func(b *bench) { b.OnRestore() },
		"suspended": func(b *bench) { b.clock.Step(2 * time.Second) },
		"set back":  func(b *bench) { b.clock.Step(-2 * time.Second) },
	} {
		b := newBench(t)
		b.store.set(nil, errAway)
		b.next()
		b.store.set(nil, nil)
		before := b.block(0)
		if before.Nonce == "" {
			t.Fatal("nothing was granted")
		}
		b.store.calls = nil
		happen(b)
		b.close()
		if b.wantBlock(before); len(b.store.calls) > 0 {
			t.Errorf("%s: %d requests", name, len(b.store.calls))
		}
	}
	for _, answer := range []error{nil, lease.ErrNoFreeNode} {
		b := newBench(t)
		b.store.set(answer, nil)
		b.next()
		b.store.set(nil, nil)
		b.close()
		if n := len(b.store.asked("acquire")); n != 1 {
			t.Errorf("%v: %d Acquires, want only the one that was answered", answer, n)
		}
	}
}

// A copy gave back a grant, and the bid has the same block again: the seconds that were used with
// the first grant, also the borrowed ones, are not given back with the second.
func TestCloseGivesBackNoUsedSecond(t *testing.T) {
	b := newHeld(t, lease.WithMaxBlocks(2))
	b.releasedByACopy()
	for range 3 {
		b.second()
	}
	b.store.set(nil, errAway)
	b.Step(t.Context())
	b.store.set(nil, nil)
	if g := b.block(0); g.Owner == "" {
		t.Fatalf("the block is %+v, want it granted again", g)
	}
	b.Seal()
	if err := b.GiveBackAll(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("the first grant: %v", err)
	}
	if g, want := b.block(0), testStart.Add(3*time.Second); g.Owner != "" || g.End.Before(want) {
		t.Errorf("the block is %+v, want it released from %s", g, want)
	}
}

// An error handler that never returns blocks neither renewals nor IDs nor Close.
func TestHandlerBlocks(t *testing.T) {
	inTime(t, func(t *testing.T) {
		release, got := make(chan bool), make([]error, 0, 2)
		store := &fakeStore{Store: driver.NewMemory(driver.AllNodes), away: errAway}
		k := openTest(t, store, lease.WithTTL(10*time.Second), lease.WithErrorHandler(func(err error) {
			<-release
			got = append(got, err)
		}))
		time.Sleep(time.Minute)
		store.set(nil, nil)
		time.Sleep(time.Minute)
		if _, err := k.Next(); err != nil || len(store.asked("renew")) < 8 {
			t.Errorf("%v after %d renewals", err, len(store.asked("renew")))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.Close(ctx); err != nil {
			t.Error(err)
		}
		close(release)
		synctest.Wait()
		if len(got) != 2 || !errors.Is(got[0], errAway) || !strings.Contains(got[0].Error(), "lease: acquire") || !errors.Is(got[1], lease.ErrRecovered) {
			t.Errorf("reported %v", got)
		}
	})
}
