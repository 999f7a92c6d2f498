package lease_test

import (
	"context"
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

// fleet is what processes under one secret made.
type fleet struct {
	t       *testing.T
	codec   *randflake.Codec
	made    map[randflake.ID]bool
	equal   int
	running []func(burst []randflake.ID) int
}

const recipeTTL = 10 * time.Minute

// few blocks, so that a process gets one that another one had.
var recipeNodes = driver.NodeRange{Nodes: 16, BlockSize: 1}

// start starts a process for each clock. They run until the test is over.
func (f *fleet) start(store lease.Store, ahead ...time.Duration) {
	f.t.Helper()
	for i, d := range ahead {
		clock := wrongClock{began: time.Now(), ahead: d, slew: []float64{5e-3, 0, -5e-3}[i%3]}
		k, err := lease.Start(context.Background(), store, f.codec, lease.WithTTL(recipeTTL), lease.WithMaxBlocks(1),
			lease.WithClock(clock), lease.WithErrorHandler(func(error) {}), lease.WithMeterProvider(noop.NewMeterProvider()))
		if err != nil {
			f.t.Fatal(err)
		}
		f.running = append(f.running, func(burst []randflake.ID) int {
			n, _, _ := k.Fill(burst)
			return n
		})
		f.t.Cleanup(func() { _ = k.Close(context.Background()) })
		f.run(time.Second)
	}
}

// run lets the processes make IDs every second for some time.
func (f *fleet) run(d time.Duration) {
	var burst [4]randflake.ID
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		for _, fill := range f.running {
			for _, id := range burst[:fill(burst[:])] {
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
			f := &fleet{t: t, codec: testCodec(t), made: map[randflake.ID]bool{}}
			if play(t, f, byTheBook); (f.equal == 0) != byTheBook {
				t.Errorf("by the book %t: %d equal IDs", byTheBook, f.equal)
			}
		})
	}
}

// A store with a clock is restored from a backup, and raised to its time plus the longest TTL plus
// three minutes. The new one's clock is a minute behind. Processes that the store has forgotten use
// their leases to the end meanwhile.
func TestRestoreRecipe(t *testing.T) {
	playRecipe(t, func(t *testing.T, f *fleet, byTheBook bool) {
		clock := wrongClock{began: time.Now()}
		behind := wrongClock{began: clock.began, ahead: -62 * time.Second} // two of which are S3's whole seconds
		memory := driver.NewMemory(driver.WithNodeRange(recipeNodes), driver.WithClock(clock))
		store := &fakeStore{Store: memory}
		f.start(store, wrongClocks[:3]...)
		f.run(time.Minute)
		backup, err := memory.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.start(store, wrongClocks[3:]...)
		f.run(4*time.Hour + 7*time.Minute) // a clock that is 50 s ahead and too fast passes the minute
		store.set(errAway, nil)
		restored := driver.NewMemory(driver.WithNodeRange(recipeNodes), driver.WithClock(behind), driver.WithBlocks(backup))
		now, err := restored.Time(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		until := driver.AfterLeases(now, recipeTTL)
		if !byTheBook {
			until = now.Add(time.Minute)
		}
		if _, err := restored.Raise(t.Context(), until); err != nil {
			t.Fatal(err)
		}
		f.start(restored, wrongClocks...)
		f.run(4 * time.Hour)
		if len(f.made) < 100_000 {
			t.Errorf("only %d IDs were made", len(f.made))
		}
	})
}
