package idgen

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/randflake"
)

// repeating returns a draw of a machine whose randomness repeats itself: all of its copies draw the
// same. Bit flip of each draw is inverted, if it is not negative.
func repeating(flip int) func([]byte) {
	draws := byte(0)
	return func(b []byte) {
		draws++
		for i := range b {
			b[i] = draws
		}
		if flip >= 0 {
			b[flip/8] ^= 1 << (flip % 8)
		}
	}
}

func firstID(t *testing.T, s Source) randflake.ID {
	t.Helper()
	var id [1]randflake.ID
	if _, _, err := s.Fill(id[:]); err != nil {
		t.Fatal(err)
	}
	return id[0]
}

// Every bit of the 128 that are drawn for the secret matters.
func TestSecretIsDrawnWhole(t *testing.T) {
	c := newClock(noon)
	seen := map[randflake.ID]bool{}
	for flip := -1; flip < 128; flip++ {
		flipped, draws := repeating(flip), 0
		p := newPrivate(c, func(b []byte) {
			if draws++; draws == 1 { // the secret; the rest are places
				flipped(b)
			} else {
				clear(b)
			}
		})
		id := firstID(t, p)
		if seen[id] || draws != 2 {
			t.Errorf("bit %d of the secret makes no difference, or %d draws", flip, draws)
		}
		seen[id] = true
	}
}

// A step back by more than the source tolerates causes exactly one new secret, however many
// goroutines notice it; a smaller one causes none.
func TestPrivateSourceTakesANewSecret(t *testing.T) {
	c := newClock(noon.Truncate(time.Second))
	p := newPrivate(c, entropy.Read)
	firstID(t, p)
	first := p.generator.Load()
	c.add(-1900 * time.Millisecond)
	if firstID(t, p); p.generator.Load() != first {
		t.Error("a small step caused a new secret")
	}
	c.add(-1100 * time.Millisecond) // three seconds before the first, counted in whole ones
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { firstID(t, p) })
	}
	wg.Wait()
	second := p.generator.Load()
	if firstID(t, p); second == first || p.generator.Load() != second {
		t.Error("no new secret after a large step, or one without a step")
	}
	c.set(time.Unix(0, 0))
	if n, _, err := p.Fill(make([]randflake.ID, 10)); n != 0 || err == nil || p.generator.Load() != second {
		t.Errorf("at 1970: %d, %v", n, err)
	}
}

// The zero-configuration source works from Randflake's first second to its last but one.
func TestPrivateSourceHasAllTime(t *testing.T) {
	for _, at := range []time.Time{time.Unix(randflake.Epoch, 0), time.UnixMilli(randflake.EndOfLife*1000 - 1001)} {
		n, second, err := newPrivate(newClock(at), entropy.Read).Fill(make([]randflake.ID, 10))
		if n != 10 || !second.Equal(at.Truncate(time.Second)) {
			t.Errorf("at %v: %d IDs of %v, %v", at.UTC(), n, second.UTC(), err)
		}
	}
}

// twins returns two generators with one secret, as of a machine that was copied: everything that
// was drawn until then is equal. What is drawn later comes from draw.
func twins(c *fakeClock, draw ...func([]byte)) (a, b *Generator) {
	both := make([]*Generator, 2)
	for i := range both {
		both[i] = New(WithClock(c), optionFunc(func(cfg config) config {
			copied, drawn := repeating(-1), false
			cfg.entropy = func(b []byte) {
				if !drawn { // the secret
					drawn = true
					copied(b)
					return
				}
				draw[i](b)
			}
			return cfg
		}))
	}
	return both[0], both[1]
}

// equal counts the low halves and span IDs that both generators make in a second.
func equal(t *testing.T, a, b *Generator, n int) (count int) {
	t.Helper()
	seen := map[randflake.ID]bool{}
	for _, g := range []*Generator{a, b} {
		for range n {
			id, span := g.NewIDs(t.Context())
			for _, id := range []randflake.ID{idOf(id[8:]), idOf(span[:])} {
				if seen[id] {
					count++
				}
				seen[id] = true
			}
		}
	}
	return count
}

// Copies of a process whose kernels differ after the copy make different IDs from the next second
// on, without any sign that they were copied. If nothing differs at all, they never part.
func TestCopiesPart(t *testing.T) {
	const most = 1000 // not all, if the scheduler moves the test to another processor
	c := newClock(noon)
	same, other := repeating(-1), repeating(3)
	a, b := twins(c, same, repeating(-1))
	if n := equal(t, a, b, 1000); n < most {
		t.Fatalf("%d of 2000 IDs are equal although all draws are: the test is meaningless", n)
	}
	same = repeating(-1)
	parting := noon.Add(time.Second)
	until := func(before, after func([]byte)) func([]byte) {
		return func(b []byte) {
			if c.time().Before(parting) {
				before(b)
			} else {
				after(b)
			}
		}
	}
	a, b = twins(c, until(repeating(-1), entropy.Read), until(same, other))
	if n := equal(t, a, b, 1000); n < most {
		t.Errorf("%d of 2000 IDs of the copy's second are equal: want most, as the documentation says", n)
	}
	for range 60 {
		c.pass(time.Second)
		if n := equal(t, a, b, 1000); n != 0 {
			t.Fatalf("%v: %d of 2000 IDs are equal", c.time(), n)
		}
	}
}

// copyable stands in for the SDK's default generator, which draws from the runtime's ChaCha8: that
// state lies in the process's memory and cannot be copied here, so two equal seeds stand for it.
func copyable() func() trace.SpanID {
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	return func() (id trace.SpanID) {
		binary.NativeEndian.PutUint64(id[:], r.Uint64())
		return id
	}
}

// The documentation's figures for two copies of a process, alongside the SDK's default.
func TestTwoCopiesBesideTheSDK(t *testing.T) {
	const seconds, each = 100, 1000
	c := newClock(noon)
	a, b := twins(c, entropy.Read, entropy.Read)
	x, y := copyable(), copyable()
	ours, theirs := 0, 0
	for range seconds {
		ours += equal(t, a, b, each)
		seen := map[trace.SpanID]bool{}
		for range each {
			seen[x()] = true
		}
		for range each {
			if seen[y()] {
				theirs++
			}
		}
		c.pass(time.Second)
	}
	t.Logf("equal IDs in %d s: %d of ours, %d span IDs of the SDK's default", seconds, ours, theirs)
	if ours != 0 || theirs != seconds*each {
		t.Errorf("%d of ours are equal, want 0; %d of the SDK's, want %d", ours, theirs, seconds*each)
	}
}
