package lease_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// The recipes for operators, as docs/operating.md has them, are played here by the book, with
// clocks that are wrong by hours and clocks that run too fast or too slow, and once wrongly, which
// must show.

// wrongClock differs from the right time: by a constant, and by more with each second.
type wrongClock struct {
	began time.Time
	ahead time.Duration
	slew  float64 // seconds a second; NTP slews by 0.0005
}

// rightTime maps the bubble's time, which begins in 2000, to a time that can be leased.
func rightTime() time.Time { return time.Now().AddDate(26, 0, 0) }

func (c wrongClock) Elapsed() time.Duration { return time.Since(c.began) }

func (c wrongClock) Now() time.Time {
	return rightTime().Add(c.ahead + time.Duration(c.slew*float64(c.Elapsed())))
}

// fleet is the processes of a recipe and the IDs that they made.
type fleet struct {
	t       *testing.T
	made    map[randflake.ID]bool
	equal   int
	running []*lease.Keeper
}

const recipeTTL = 10 * time.Minute

// recipeNodes are few blocks, so that a process gets one that another one had.
var recipeNodes = driver.NodeRange{Nodes: 16, BlockSize: 1}

// start starts a process for each clock. They run until they are stopped, or the test is over.
func (f *fleet) start(store lease.Store, secret *randflake.Codec, ahead ...time.Duration) (started []*lease.Keeper) {
	f.t.Helper()
	for i, d := range ahead {
		clock := wrongClock{began: time.Now(), ahead: d, slew: []float64{5e-3, 0, -5e-3}[i%3]}
		k, err := lease.Start(context.Background(), store, secret, lease.WithTTL(recipeTTL), lease.WithMaxBlocks(1),
			lease.WithClock(clock), lease.WithErrorHandler(func(error) {}), lease.WithMeterProvider(noop.NewMeterProvider()))
		if err != nil {
			f.t.Fatal(err)
		}
		f.running = append(f.running, k)
		started = append(started, k)
		f.t.Cleanup(func() { _ = k.Close(context.Background()) })
		f.run(time.Second)
	}
	return started
}

// stop ends processes, as a rollout does.
func (f *fleet) stop(old ...*lease.Keeper) {
	f.t.Helper()
	for _, k := range old {
		if err := k.Close(context.Background()); err != nil {
			f.t.Fatal(err)
		}
		f.running = slices.DeleteFunc(f.running, func(other *lease.Keeper) bool { return other == k })
	}
}

// run lets the processes make IDs every second for some time.
func (f *fleet) run(d time.Duration) {
	var burst [4]randflake.ID
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		for _, k := range f.running {
			n, _, _ := k.Fill(burst[:])
			for _, id := range burst[:n] {
				if f.made[id] {
					f.equal++
				}
				f.made[id] = true
			}
		}
	}
}

// wrongClocks are hours behind and as far ahead as the store lets them, and then run too fast.
var wrongClocks = []time.Duration{55 * time.Second, 0, -3 * time.Hour, 50 * time.Second, -20 * time.Minute, time.Second, 3 * time.Hour}

// playRecipe plays a recipe by the book, which must make no equal IDs, and wrongly, which must make
// some, or the test shows nothing.
func playRecipe(t *testing.T, play func(t *testing.T, f *fleet, byTheBook bool)) {
	t.Helper()
	for _, byTheBook := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{t: t, made: map[randflake.ID]bool{}}
			if play(t, f, byTheBook); (f.equal == 0) != byTheBook {
				t.Errorf("by the book %t: %d equal IDs", byTheBook, f.equal)
			}
		})
	}
}

// A store with a clock is restored from a backup, and raised to its time plus the longest TTL plus
// three minutes. The new one's clock is a minute behind. Processes that the store has forgotten use
// their leases to the end meanwhile. Two operators raise it at once, and one of them repeats that
// when processes use the store again: it is one raise, and takes no lease.
func TestRestoreRecipe(t *testing.T) {
	playRecipe(t, func(t *testing.T, f *fleet, byTheBook bool) {
		clock := wrongClock{began: time.Now()}
		behind := wrongClock{began: clock.began, ahead: -62 * time.Second} // two of which are S3's whole seconds
		about := lease.Description{Nodes: recipeNodes.Nodes, BlockSize: recipeNodes.BlockSize, LongestTTL: recipeTTL}
		memory := driver.NewMemory(driver.WithDescription(about), driver.WithClock(clock))
		store, secret := &fakeStore{Store: memory}, testCodec(t)
		f.start(store, secret, wrongClocks[:3]...)
		f.run(time.Minute)
		backup, err := memory.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.start(store, secret, wrongClocks[3:]...)
		f.run(4*time.Hour + 7*time.Minute) // a clock that is 50 s ahead and too fast passes the minute
		store.set(errAway, nil)
		restored := driver.NewMemory(driver.WithDescription(about), driver.WithClock(behind), driver.WithBlocks(backup))
		// compute is the first half of the command, raise the second: another operator, or a pause of
		// minutes, comes between the two.
		compute := func() time.Time {
			now, err := restored.Time(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !byTheBook {
				return now // without the longest TTL and the margin
			}
			return driver.AfterLeases(now, about.LongestTTL)
		}
		raise := func(until time.Time) time.Time {
			raised, err := restored.Raise(t.Context(), until)
			if err != nil {
				t.Fatal(err)
			}
			return raised
		}
		first := compute()
		f.run(40 * time.Second)
		second := compute()
		raised := raise(second)
		if again := raise(first); byTheBook && !again.Equal(raised) {
			t.Errorf("two operators at once raise the store to %s and to %s", raised, again)
		}
		// Enough processes that the store does not refuse, for the blocks of the old leases.
		clocks := slices.Concat(slices.Repeat([]time.Duration{behind.ahead + 30*time.Second}, 6), wrongClocks)
		fresh := f.start(restored, secret, clocks...)
		f.run(5 * time.Minute)
		if again := raise(compute()); byTheBook && !again.Equal(raised) {
			t.Errorf("the repeated raise is to %s, the first one was to %s", again, raised)
		}
		f.run(4 * time.Hour)
		for i, k := range fresh {
			if err := k.Failure(); byTheBook && err != nil && !errors.Is(err, lease.ErrClockAhead) {
				t.Errorf("the process with a clock %s ahead: %v", clocks[i], err)
			}
		}
		if len(f.made) < 100_000 {
			t.Errorf("only %d IDs were made", len(f.made))
		}
	})
}

// The store is changed: a new one has a new secret, other blocks and a clock that is hours behind.
// It is rolled out process by process; the rollout stops halfway, a part of it is undone, and it is
// repeated. One process gets only half of its new settings: it has no lease until that is mended.
// Wrongly, the new store is used at once under the secret of the old one.
func TestNewStoreRecipe(t *testing.T) {
	playRecipe(t, func(t *testing.T, f *fleet, byTheBook bool) {
		create := func(secret *randflake.Codec, blockSize uint32, ahead time.Duration) *driver.Memory {
			d := lease.Description{ID: lease.NewNonce(), Nodes: recipeNodes.Nodes, BlockSize: blockSize, LongestTTL: recipeTTL}
			d.Secrets = []string{lease.Fingerprint(secret, d.ID)}
			m := driver.EmptyMemory(driver.WithClock(wrongClock{began: time.Now(), ahead: ahead}))
			for range 2 { // the command is repeated
				if err := m.Create(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			if d.ID = lease.NewNonce(); !errors.Is(m.Create(t.Context(), d), lease.ErrExists) {
				t.Error("another operator creates the store again")
			}
			return m
		}
		oldSecret, newSecret := testCodec(t), otherCodec(t)
		if !byTheBook {
			newSecret = oldSecret
		}
		const behind = -5 * time.Hour
		clocks := wrongClocks[:6] // the last one is refused by a store with a clock
		oldStore := create(oldSecret, 1, 0)
		old := f.start(oldStore, oldSecret, clocks...)
		f.run(time.Hour)
		newStore := create(newSecret, 2, behind)
		toNew := func(ahead ...time.Duration) []*lease.Keeper {
			relative := slices.Clone(ahead)
			for i := range relative {
				relative[i] += behind // the machines' clocks are as wrong as the store's
			}
			return f.start(newStore, newSecret, relative...)
		}
		var moved []*lease.Keeper
		for i := range 3 {
			f.stop(old[i])
			moved = append(moved, toNew(clocks[i])...)
			f.run(2 * time.Minute)
		}
		half := f.start(newStore, oldSecret, behind)[0]
		f.run(time.Hour) // the rollout is interrupted
		if err := half.Failure(); byTheBook && !errors.Is(err, lease.ErrWrongSecret) {
			t.Errorf("the new store with the old secret: %v", err)
		}
		f.stop(half, moved[2]) // undone
		f.start(oldStore, oldSecret, clocks[2])
		f.run(20 * time.Minute)
		f.stop(slices.Clone(f.running)...) // repeated
		all := toNew(clocks...)
		f.run(time.Hour)
		for i, k := range all {
			if _, err := k.Next(); err != nil && !errors.Is(k.Failure(), lease.ErrClockAhead) {
				t.Errorf("the process with a clock %s ahead: %v, %v", clocks[i], err, k.Failure())
			}
		}
		if len(f.made) < 100_000 {
			t.Errorf("only %d IDs were made", len(f.made))
		}
	})
}

func otherCodec(t *testing.T) *randflake.Codec {
	t.Helper()
	c, err := randflake.NewCodec([]byte("fedcba9876543210"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
