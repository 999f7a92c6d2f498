package idgen

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

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
// When it runs is seen in TestIDsHaveTheCurrentSecond.
func TestTimer(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New(noCounter)
		runs, last := 0, g.eras.now.Load()
		sleep := func(d time.Duration) {
			time.Sleep(d)
			if now := g.eras.now.Load(); now != last {
				runs, last = runs+1, now
			}
		}
		check := func(want int) {
			t.Helper()
			for range 30 {
				sleep(100 * time.Millisecond)
			}
			if sleep(3 * time.Hour); runs != want {
				t.Errorf("the timer ran %d times, want %d", runs, want)
			}
			runs = 0
		}
		check(0)
		for range 3 {
			g.NewIDs(t.Context())
			check(1)
		}
		const seconds = 10
		for range seconds * 100 {
			for range 50 {
				g.NewIDs(t.Context())
				g.NewSpanID(t.Context(), trace.TraceID{})
			}
			sleep(10 * time.Millisecond)
		}
		check(seconds)
	})
}

// Span IDs, for which no clock is read, have the current second.
func TestIDsHaveTheCurrentSecond(t *testing.T) {
	in2026(t, func(t *testing.T) {
		codec, g := newCodec(t, fleetSecret), New(WithSource(newSource(t, time.Now)), noCounter)
		span := func() {
			t.Helper()
			got, want := codec.Decode(spanOf(g)).Time, time.Now().Truncate(time.Second)
			if !got.Equal(want) {
				t.Fatalf("the ID's second is %v, want %v", got, want)
			}
		}
		for range 1003 { // which does not end with a second
			span()
			time.Sleep(37 * time.Millisecond)
			synctest.Wait()
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
	if g.eras.change(false) != later {
		t.Error("an era began without a reason")
	}
	c.late(t, g)
	if c.pass(time.Second); g.eras.now.Load() == later {
		t.Error("an era outlived its second")
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

// When the source's generation changes, the ready IDs of all processors are discarded the next
// time that one of them reads the clock, or when the timer runs. The generation at the start is no
// change.
func TestGeneration(t *testing.T) {
	for name, read := range map[string]func(c *fakeClock, g *Generator){
		"by a reading": func(c *fakeClock, g *Generator) { c.pass(trusted); g.NewIDs(t.Context()) },
		"by the timer": func(c *fakeClock, _ *Generator) { c.pass(time.Second) },
	} {
		errs := reportstest.Collect(t)
		c := newClock(noon.Truncate(time.Second))
		s := &tagged{clock: c.Now}
		s.generation.Store(7)
		g, other := c.both(t, WithSource(s))
		for generation := uint64(8); generation < 12; generation++ {
			s.generation.Store(generation)
			read(c, g)
			for range 2 {
				other()
				if got := uint64(spanOf(g) >> 32); got != generation {
					t.Errorf("%s: a span ID of generation %d, want %d", name, got, generation)
				}
			}
		}
		if len(errs()) != 0 || g.eras.restores.Load() != 0 {
			t.Errorf("%s: %d restores, %v: want none", name, g.eras.restores.Load(), errs())
		}
	}
}

// IDs generated while the generation changed count as old. A generation that changes with
// each fill leads to random IDs, not to an endless loop.
func TestGenerationChangesDuringTheFill(t *testing.T) {
	reportstest.Collect(t)
	c := newClock(noon)
	s := &tagged{clock: c.Now}
	g := New(WithSource(s), WithClock(c.Now))
	s.filled = func() {
		if s.fills.Load() == 1 {
			s.generation.Add(1)
		}
	}
	if id := spanOf(g); s.fills.Load() != 2 || id>>32 != 1 {
		t.Errorf("%d fills, want 2; the ID is %v", s.fills.Load(), id)
	}
	s.fills.Store(0)
	s.filled = func() { s.generation.Add(1) }
	s.generation.Add(1)
	if id := spanOf(g); id == 0 || g.Fallbacks() != 1 || s.fills.Load() != attempts {
		t.Errorf("%v, %d fallbacks, %d fills; want 1 and %d", id, g.Fallbacks(), s.fills.Load(),
			attempts)
	}
	// The clear half taken during the change is as old as those IDs.
	s = &tagged{clock: c.Now}
	s.asked = func() {
		if s.fills.Load() == 1 {
			s.asked = nil
			c.pass(10 * time.Second)
			s.generation.Add(1)
		}
	}
	if late := c.late(t, New(WithSource(s), WithClock(c.Now))); late != 0 || s.asked != nil {
		t.Errorf("late by %v", late)
	}
}

// However long the process is stopped around a fill, before the source reads the clock or after
// it, and whichever way the clock is stepped, both halves of a trace ID agree.
func TestStoppedAroundAFill(t *testing.T) {
	stops := []time.Duration{
		0, 900 * time.Millisecond, 10 * time.Second, -1500 * time.Millisecond, -time.Minute,
	}
	codec := newCodec(t, fleetSecret)
	for _, before := range stops {
		for _, after := range stops {
			for _, again := range stops[:2] {
				c := newClock(noon)
				leased, fills := newSource(t, c.time), 0
				fill := func(dst []randflake.ID) (int, time.Time, error) {
					fills++
					if fills > 1 {
						defer c.add(again)
					} else {
						c.add(before)
						defer c.add(after)
					}
					return leased.Fill(dst)
				}
				g := New(WithClock(c.Now), WithSource(sourceFunc(fill)))
				errs := reportstest.Collect(t)
				id, _ := g.NewIDs(t.Context())
				v := traceid.NewVerifier(randflake.NewKeyring(codec), traceid.WithClock(c.Now),
					traceid.WithSkew(2*time.Minute))
				if !v.Verify(id) && len(errs()) == 0 {
					t.Errorf("stopped for %v and %v, then %v: refused: %+v", before, after, again,
						traceid.Inspect(randflake.NewKeyring(codec), id))
				}
				if before >= 0 && after >= 0 && len(errs()) != 0 {
					t.Errorf("stopped for %v and %v, then %v: %v", before, after, again, errs())
				}
			}
		}
	}
}

// The source learns of a restore before the next era begins: IDs that it generates until then are
// discarded, on each processor. Each restore is counted and reported.
func TestRestored(t *testing.T) {
	errs := reportstest.Collect(t)
	c := newClock(noon)
	s := &tagged{clock: c.time}
	g, other := c.both(t, WithSource(s))
	s.restored = func() {
		for range 2 * maxBatch { // with a batch of the old lease, on two processors
			spanOf(g)
			other()
		}
	}
	for generation := randflake.ID(1); generation < 4; generation++ {
		g.OnRestore()
		for range 2 * maxBatch {
			other()
			if _, low, span := idsOf(g); low>>32 != generation || span>>32 != generation {
				t.Fatalf("generation %d: %s, %s", generation, low, span)
			}
		}
	}
	if got := errs(); len(got) != 3 || !errors.Is(got[0], errRestored) ||
		g.eras.restores.Load() != 3 {
		t.Errorf("%d restores are counted, want 3: %v", g.eras.restores.Load(), got)
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
			cfg.kernel, cfg.entropy = kernel.Uint64, func(b []byte) { b[0] = drawn }
		})
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

// An era that ends while a processor reads the clock is over for that processor too: it reads the
// clock again.
func TestEraEndsWhileTheClockIsRead(t *testing.T) {
	c := newClock(noon)
	g, _ := c.both(t)
	c.pass(trusted + 4*time.Millisecond)
	reads := c.reads
	c.hook = func() {
		if c.reads == reads {
			return // only the monotonic clock was read
		}
		c.hook = nil
		g.eras.end(g.eras.now.Load()) // another processor has noticed a step of the clock
	}
	for range 10 {
		if g.NewIDs(t.Context()); c.reads-reads != 2 {
			t.Fatalf("the clock was read %d times, want twice", c.reads-reads)
		}
	}
}
