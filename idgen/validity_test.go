package idgen

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

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

// withoutCounter makes g read the clock: the counter does not know a bubble's time.
func withoutCounter(g *Generator) *Generator {
	g.clock.wrong.Store(true)
	return g
}

// The timer runs at the end of each second in which IDs are made, however many, and never
// otherwise.
func TestTimer(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := withoutCounter(New())
		ran := func() func() uint64 {
			before := g.valid.epoch.Load()
			return func() uint64 { return g.valid.epoch.Load() - before }
		}
		idle := ran()
		time.Sleep(3 * time.Hour)
		if idle() != 0 {
			t.Errorf("the timer ran %d times without an ID", idle())
		}
		for range 3 {
			g.NewIDs(t.Context())
			second := ran()
			time.Sleep(time.Hour)
			if second() != 1 {
				t.Errorf("the timer ran %d times for one ID, want 1", second())
			}
		}
		busy := ran()
		const seconds = 10
		for range seconds * 100 {
			for range 50 {
				g.NewIDs(t.Context())
				g.NewSpanID(t.Context(), trace.TraceID{})
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := busy(); n < seconds-1 || n > seconds+1 {
			t.Errorf("the timer ran %d times in %d s", n, seconds)
		}
		time.Sleep(time.Hour + 400*time.Millisecond)
		g.NewSpanID(t.Context(), trace.TraceID{})
		second := ran()
		time.Sleep(600*time.Millisecond - time.Microsecond)
		if second() != 0 {
			t.Error("the timer ran before the end of the second")
		}
		time.Sleep(2 * time.Microsecond)
		if second() != 1 {
			t.Error("the timer did not run at the end of the second")
		}
	})
}

// seconds is a source whose IDs are numbered within their second, which is the upper half.
func seconds(clock randflake.Clock) sourceFunc {
	n := uint64(0)
	return func(dst []randflake.ID) (int, time.Time, error) {
		now := clock.Now()
		for i := range dst {
			n++
			dst[i] = randflake.ID(uint64(now.Unix())<<32 | n)
		}
		return len(dst), now.Truncate(time.Second), nil
	}
}

// Span IDs, for which no clock is read, have the current second. So have all IDs after Close, with
// no timer.
func TestIDsHaveTheCurrentSecond(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New(WithSource(seconds(randflake.SystemClock)))
		span := func() {
			t.Helper()
			id := g.NewSpanID(t.Context(), trace.TraceID{})
			if got, want := int64(idOf(id[:])>>32), time.Now().Unix(); got != want {
				t.Fatalf("the ID's second is %d, want %d", got, want)
			}
		}
		for range 1000 {
			span()
			time.Sleep(37 * time.Millisecond)
			synctest.Wait()
		}
		for range 2 {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		withoutCounter(g)
		closed := g.valid.epoch.Load()
		for range 10 {
			time.Sleep(700 * time.Millisecond)
			span()
			id, _ := g.NewIDs(t.Context())
			if late := time.Since(traceid.Time(id)); late < 0 || late > time.Millisecond {
				t.Errorf("late by %v", late)
			}
		}
		if g.valid.epoch.Load() != closed {
			t.Error("the timer ran after Close")
		}
	})
}

// In a bubble, a generator with time.Now as its clock has the bubble's time, whatever the counter
// says: that is what the package documentation advises.
func TestClockForABubble(t *testing.T) {
	in2026(t, func(t *testing.T) {
		g := New(WithClock(randflake.ClockFunc(time.Now)))
		for i := range 200 {
			for start := time.Now(); i%20 == 0 && time.Since(start) == 0; {
				time.Sleep(time.Duration(i+1) * time.Millisecond)
			}
			if id, _ := g.NewIDs(t.Context()); !traceid.Time(id).Equal(time.Now().Truncate(time.Millisecond)) {
				t.Fatalf("the ID's time is %v, the bubble's %v", traceid.Time(id), time.Now())
			}
		}
	})
}

// A batch may be used from two seconds before its second, since the second may be borrowed, until
// that second ends; so none of it is used after a larger step of the clock.
func TestBatchIsValidForItsSecond(t *testing.T) {
	for _, tt := range []struct {
		step int // in milliseconds
		used bool
	}{{-2001, false}, {-2000, true}, {0, true}, {999, true}, {1000, false}} {
		c := newClock(noon.Truncate(time.Second))
		s := &tagged{clock: c}
		g := New(WithSource(s), WithClock(c))
		g.NewSpanID(t.Context(), trace.TraceID{})
		c.add(time.Duration(tt.step) * time.Millisecond)
		if g.NewSpanID(t.Context(), trace.TraceID{}); (s.fills.Load() == 1) != tt.used {
			t.Errorf("at %d ms: used %v, want %v", tt.step, !tt.used, tt.used)
		}
	}
}

// When the source's generation changes, the ready IDs of all processors are discarded the next time
// that one of them reads the clock. The generation at the start is no change.
func TestGeneration(t *testing.T) {
	for name, read := range map[string]func(c *fakeClock, g *Generator){
		"by the counter": func(c *fakeClock, g *Generator) { c.pass((trusted + 1) * time.Millisecond); g.NewIDs(t.Context()) },
		"by the timer":   func(c *fakeClock, g *Generator) { g.valid.end() },
	} {
		t.Run(name, func(t *testing.T) {
			errs := collectErrors(t)
			c := newClock(noon.Truncate(time.Second))
			s := &tagged{clock: c}
			s.generation.Store(7)
			g := c.counted(WithSource(s))
			other := onOne(t, g)
			c.learn(t, g)
			other()
			c.learn(t, g)
			life := g.valid.life.Load()
			for generation := uint64(8); generation < 12; generation++ {
				s.generation.Store(generation)
				read(c, g)
				for range 2 {
					other()
					id := g.NewSpanID(t.Context(), trace.TraceID{})
					if got := uint64(idOf(id[:]) >> 32); got != generation {
						t.Errorf("a span ID of generation %d, want %d", got, generation)
					}
				}
			}
			if g.valid.life.Load() == life || len(errs.all()) != 0 || g.valid.restores.Load() != 0 {
				t.Errorf("%d restores, %v: want none", g.valid.restores.Load(), errs.all())
			}
		})
	}
}

// IDs that were made while the generation changed count as old. A generation that changes with
// each fill leads to random IDs, not to an endless loop.
func TestGenerationChangesDuringTheFill(t *testing.T) {
	collectErrors(t)
	c := newClock(noon)
	s := &tagged{clock: c}
	g := New(WithSource(s), WithClock(c))
	s.filled = func() {
		if s.fills.Load() == 1 {
			s.generation.Add(1)
		}
	}
	if id := g.NewSpanID(t.Context(), trace.TraceID{}); s.fills.Load() != 2 || idOf(id[:])>>32 != 1 {
		t.Errorf("%d fills, want 2; the ID is %v", s.fills.Load(), id)
	}
	s.fills.Store(0)
	s.filled = func() { s.generation.Add(1) }
	s.generation.Add(1)
	if id := g.NewSpanID(t.Context(), trace.TraceID{}); !id.IsValid() || g.Fallbacks() != 1 || s.fills.Load() != 3 {
		t.Errorf("%v, %d fallbacks, %d fills; want 1 and 3", id, g.Fallbacks(), s.fills.Load())
	}
}

// However long the process is stopped around a fill, before the source reads the clock or after it,
// and whichever way the clock is stepped meanwhile, both halves of a trace ID agree.
func TestStoppedAroundAFill(t *testing.T) {
	stops := []time.Duration{0, 900 * time.Millisecond, 10 * time.Second, -1500 * time.Millisecond, -time.Minute}
	codec := newCodec(t, fleetSecret)
	for _, before := range stops {
		for _, after := range stops {
			for _, again := range stops[:2] {
				c := newClock(noon)
				leased, fills := newSource(t, unread{c}), 0
				g := New(WithClock(c), WithSource(sourceFunc(func(dst []randflake.ID) (int, time.Time, error) {
					fills++
					if fills > 1 {
						defer c.add(again)
					} else {
						c.add(before)
						defer c.add(after)
					}
					return leased.Fill(dst)
				})))
				errs := collectErrors(t)
				id, _ := g.NewIDs(t.Context())
				v := traceid.NewVerifier(randflake.NewKeyring(codec), traceid.WithClock(c), traceid.WithSkew(2*time.Minute))
				if !v.Verify(id) && len(errs.all()) == 0 {
					t.Errorf("stopped for %v and %v, then %v: refused: %+v", before, after, again,
						traceid.Inspect(randflake.NewKeyring(codec), id))
				}
				if before >= 0 && after >= 0 && len(errs.all()) != 0 {
					t.Errorf("stopped for %v and %v, then %v: %v", before, after, again, errs.all())
				}
			}
		}
	}
}

// After a refusal in the second of the last batch, no ID of that batch is handed out again.
func TestRefusalInTheSameSecond(t *testing.T) {
	collectErrors(t)
	c := newClock(noon)
	s := &switched{Source: &tagged{clock: c}}
	g := New(WithClock(c), WithSource(s))
	seen := map[trace.SpanID]bool{}
	for i := range 8 * batchSize {
		s.refuse.Store(i >= 10)
		id := g.NewSpanID(t.Context(), trace.TraceID{})
		if seen[id] {
			t.Fatalf("call %d returned a duplicate", i)
		}
		seen[id] = true
	}
}

// told is a source that is told of restores, as a lease.Keeper is.
type told struct{ tagged }

func (s *told) Restored() { s.generation.Add(1) }

// After Restored, nothing is handed out that was made, leased or drawn before.
func TestRestored(t *testing.T) {
	errs := collectErrors(t)
	c := newClock(noon)
	s := &told{tagged{clock: unread{c}}}
	g := c.counted(WithSource(s))
	other := onOne(t, g)
	c.learn(t, g)
	other()
	c.learn(t, g)
	for generation := uint64(1); generation < 4; generation++ {
		g.Restored()
		for range 2 * batchSize {
			other()
			id, span := g.NewIDs(t.Context())
			if low := idOf(id[8:]); uint64(low>>32) != generation || uint64(idOf(span[:])>>32) != generation {
				t.Fatalf("generation %d: %s, %s", generation, id, span)
			}
		}
	}
	if got := errs.all(); len(got) != 3 || !errors.Is(got[0], errRestored) || g.valid.restores.Load() != 3 {
		t.Errorf("%d restores are counted, want 3: %v", g.valid.restores.Load(), got)
	}

	// Zero configuration: a copy that is told makes none of the original's IDs, not even in the second
	// of the copy.
	c = newClock(noon)
	original, seen := make([]randflake.ID, 16*batchSize), map[randflake.ID]bool{}
	if _, _, err := newPrivate(c, repeating(-1)).Fill(original); err != nil {
		t.Fatal(err)
	}
	for _, id := range original {
		seen[id] = true
	}
	copied := New(WithClock(c), func(cfg *config) { cfg.entropy = repeating(-1) })
	for i := range 2 * batchSize {
		if i == batchSize/2 {
			copied.Restored()
		}
		if id := copied.NewSpanID(t.Context(), trace.TraceID{}); seen[idOf(id[:])] != (i < batchSize/2) {
			t.Fatalf("ID %d is the original's: %v", i, seen[idOf(id[:])])
		}
	}
}

// After a restore leases are gone and IDs random. Copies that know of it make different ones, even
// if their kernels repeat themselves.
func TestRandomIDsOfCopies(t *testing.T) {
	collectErrors(t)
	seen := map[randflake.ID]int{}
	for copied := range 2 {
		kernel := rand.NewPCG(1, 2)
		g := New(WithSource(refused{}), func(cfg *config) { cfg.kernel = kernel.Uint64 })
		g.random.mask.Store(0) // the original's
		g.Restored()
		for range 100 {
			id, span := g.NewIDs(t.Context())
			for _, half := range []randflake.ID{idOf(id[8:]), idOf(span[:])} {
				if first, equal := seen[half]; equal {
					t.Fatalf("copies %d and %d made %s", first, copied, half)
				}
				seen[half] = copied
			}
		}
	}
}

// IDs that are made while the new secret is drawn are of the old one, and are not handed out once
// Restored has returned: the new life begins after the new secret is in place.
func TestNewSecretBeforeTheNewLife(t *testing.T) {
	collectErrors(t)
	c := newClock(noon)
	bytes, drawing := byte(1), func() {}
	draw := func(b []byte) {
		drawing()
		for i := range b {
			b[i] = bytes
		}
	}
	g := New(WithClock(c), func(cfg *config) { cfg.entropy = draw })
	onOne(t, g)
	old := map[randflake.ID]bool{}
	ids := make([]randflake.ID, 16*batchSize)
	if _, _, err := newPrivate(c, draw).Fill(ids); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		old[id] = true
	}
	span := func() bool {
		id := g.NewSpanID(t.Context(), trace.TraceID{})
		return old[idOf(id[:])]
	}
	span() // draws the place of this second
	drawing = func() {
		drawing, bytes = func() {}, 2
		for range batchSize + 1 {
			if !span() {
				t.Error("the old secret is not in use: the test is meaningless")
			}
		}
	}
	g.valid.change(true)
	for i := range 2 * batchSize {
		if span() {
			t.Fatalf("ID %d after the restore is of the old secret", i)
		}
	}
}
