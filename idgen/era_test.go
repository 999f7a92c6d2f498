package idgen

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// in2026 runs f in a bubble of fake time that starts in 2026; bubbles otherwise start in 2000.
func in2026(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon.Truncate(time.Second)))
		f(t)
	})
}

// The timer runs once in each second in which IDs are generated, however many, and never otherwise.
func TestTimer(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New(noCounter)
		runs, last := 0, g.eras.now.Load()
		sleep := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
			if now := g.eras.now.Load(); now != last {
				runs, last = runs+1, now
			}
		}
		const seconds = 10
		for range seconds * 100 {
			for range 50 {
				g.NewIDs(t.Context())
				spanOf(g)
			}
			sleep(10 * time.Millisecond)
		}
		for range 100 { // and none
			sleep(time.Second)
		}
		if runs != seconds {
			t.Errorf("the timer ran %d times in %d seconds", runs, seconds)
		}
	})
}

// A generator that was created in a bubble of fake time may be used and closed outside of it, and
// vice versa, as a program's tests do with its generator. Without a counter, which does not follow
// fake time, its IDs have the time of the place where it is used.
func TestBubbles(t *testing.T) {
	errs := reportstest.Collect(t)
	use := func(g *Generator) {
		t.Helper()
		for range 3 {
			before := time.Now()
			id, _ := g.NewIDs(t.Context())
			at, after := traceid.Time(id), time.Now()
			if at.Before(before.Add(-5*time.Millisecond)) || at.After(after) {
				t.Errorf("an ID generated between %v and %v has the time %v", before, after, at)
			}
			spanOf(g)
		}
	}
	outside := New(noCounter)
	use(outside)
	var inside *Generator
	in2026(t, func(*testing.T) {
		inside = New(noCounter)
		for range 3 {
			use(inside)
			use(outside)
			time.Sleep(700 * time.Millisecond)
		}
	})
	for _, g := range []*Generator{inside, outside} {
		use(g)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		use(g)
	}
	if len(errs()) != 0 {
		t.Error(errs())
	}
}

// A second that is ahead of the millisecond, or far behind it, shows that the clock was stepped: it
// is read at once.
func TestSecondOfAStep(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, -time.Hour} {
		c := newClock(noon.Truncate(time.Second).Add(-time.Millisecond))
		g, _ := c.both(t)
		c.add(step) // to the next second, which the source sees
		for range maxBatch {
			spanOf(g)
		}
		if late := c.late(t, g); late != 0 || g.borrowed.Load() != 0 {
			t.Errorf("stepped by %v: late by %v, %d ms borrowed", step, late, g.borrowed.Load())
		}
	}
}

// A timer ends the era for which it was set, and no later era, such as that of a restore.
func TestTimerEndsItsEra(t *testing.T) {
	reportstest.Collect(t)
	c := newClock(noon.Truncate(time.Second))
	g, _ := c.both(t)
	g.OnRestore()
	later := g.eras.now.Load()
	if c.pass(time.Second); g.eras.now.Load() != later {
		t.Error("an era was ended by the timer of an earlier one")
	}
}

// A batch has 256 IDs, and while a second uses them up each further one has twice as many, up to
// 1024.
func TestBatchesGrow(t *testing.T) {
	c := newClock(noon.Truncate(time.Second))
	source := newPrivate(c.time, entropy.Read)
	var sizes []int
	g, _ := c.both(t, WithSource(sourceFunc(func(dst []randflake.ID) (int, time.Time, error) {
		sizes = append(sizes, len(dst))
		return source.Fill(dst)
	})))
	for range 3 {
		c.pass(time.Second)
		sizes = nil
		for range 4000 {
			spanOf(g)
		}
		if want := []int{256, 512, 1024, 1024, 1024, 1024}; !slices.Equal(sizes, want) {
			t.Errorf("batches of %d, want %d", sizes, want)
		}
	}
}

// A generation that changes with each fill leads to random IDs, not to an endless loop.
func TestGenerationChangesWithEachFill(t *testing.T) {
	reportstest.Collect(t)
	s := &tagged{clock: newClock(noon).Now}
	s.filled = func() { s.generation.Add(1) }
	g := New(WithSource(s))
	if id := spanOf(g); id == 0 || g.Fallbacks() != 1 || s.fills.Load() != attempts {
		t.Errorf("%v, %d fallbacks, %d fills; want 1 and %d", id, g.Fallbacks(), s.fills.Load(),
			attempts)
	}
}

// After OnRestore, a copy without configuration generates none of the original's IDs, not even in
// the second of the copy. That includes IDs of the old secret generated while the new one is
// drawn: the new life begins after the new secret is in place.
func TestRestoredWithoutConfiguration(t *testing.T) {
	reportstest.Collect(t)
	c := newClock(noon)
	bytes, drawing := byte(1), func() {}
	draw := func(b []byte) {
		drawing()
		for i := range b {
			b[i] = bytes
		}
	}
	g := c.generator(WithSource(nil), func(cfg *config) { cfg.entropy = draw })
	onOne(t, g)
	originals := map[randflake.ID]bool{}
	for _, id := range fill(t, newPrivate(c.Now, draw), 16*maxBatch) {
		originals[id] = true
	}
	spanOf(g) // draws the place of this second
	drawing = func() {
		drawing, bytes = func() {}, 2
		for range maxBatch + 1 {
			if !originals[spanOf(g)] {
				t.Error("the old secret is not in use: the test is meaningless")
			}
		}
	}
	g.OnRestore()
	for i := range 2 * maxBatch {
		if originals[spanOf(g)] {
			t.Fatalf("ID %d after the restore is of the old secret", i)
		}
	}
}

// After a restore leases are gone and IDs are random. Copies that know of the restore, or begin
// after it, generate different IDs, even if their kernels repeat themselves.
func TestRandomIDsOfCopies(t *testing.T) {
	reportstest.Collect(t)
	generated := func(born, restored byte) (ids []randflake.ID) {
		kernel, drawn := rand.NewPCG(1, 2), born
		g := New(WithSource(refusing), func(cfg *config) {
			cfg.entropy = func(b []byte) { b[0] = drawn }
		})
		g.random.kernel = kernel.Uint64
		if drawn = restored; restored != born {
			g.OnRestore()
		}
		for range 100 {
			_, low, span := idsOf(g)
			ids = append(ids, low, span)
		}
		return ids
	}
	original := generated(0, 0)
	if !slices.Equal(generated(0, 0), original) {
		t.Fatal("the kernel does not repeat itself: the test is meaningless")
	}
	for _, id := range append(generated(0, 1), generated(1, 1)...) {
		if slices.Contains(original, id) {
			t.Fatalf("a copy generated %s, too", id)
		}
	}
}
