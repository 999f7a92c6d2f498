package idgen

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

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

// twins returns the sources of two copies of a process: their secret is equal. What they draw after
// the copy comes from the two functions.
func twins(c *fakeClock, drawA, drawB func([]byte)) (a, b *private) {
	a, b = newPrivate(c, repeating(-1)), newPrivate(c, repeating(-1))
	a.draw, b.draw = drawA, drawB
	return a, b
}

const each = 2000 // IDs that a source makes in a second

// equal counts the IDs that both sources make in this second. It asks the sources themselves: a
// generator that moves to another processor leaves some of its IDs on the first.
func equal(t *testing.T, a, b *private) (count int) {
	t.Helper()
	seen := map[randflake.ID]bool{}
	for _, p := range []*private{a, b} {
		var ids [each]randflake.ID
		if _, _, err := p.Fill(ids[:]); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if seen[id] {
				count++
			}
			seen[id] = true
		}
	}
	return count
}

// Copies of a process whose kernels differ after the copy make different IDs from the next second
// on, without any sign that they were copied. If nothing differs at all, they never part.
func TestCopiesPart(t *testing.T) {
	c := newClock(noon)
	a, b := twins(c, repeating(-1), repeating(-1))
	for range 3 {
		if n := equal(t, a, b); n != each {
			t.Fatalf("%d of %d IDs are equal although all draws are: the test is meaningless", n, each)
		}
		c.pass(time.Second)
	}
	a.draw = entropy.Read
	for range 60 {
		if n := equal(t, a, b); n != 0 {
			t.Fatalf("%v: %d of %d IDs are equal", c.time(), n, each)
		}
		c.pass(time.Second)
	}
	// In the second of the copy all are equal, as the documentation says.
	a, b = twins(c, repeating(-1), repeating(-1))
	firstID(t, a)
	firstID(t, b)
	a.draw = entropy.Read
	if n := equal(t, a, b); n != each {
		t.Errorf("%d of %d IDs of the copy's second are equal: want all", n, each)
	}
}

// The documentation's figures for two copies of a process, alongside the SDK's default. That draws
// from the runtime's ChaCha8, whose state lies in the process's memory and cannot be copied here, so
// two equal seeds stand in for it.
func TestTwoCopiesBesideTheSDK(t *testing.T) {
	const seconds = 100
	c := newClock(noon)
	a, b := twins(c, entropy.Read, entropy.Read)
	x, y := rand.NewChaCha8([32]byte{1}), rand.NewChaCha8([32]byte{1})
	ours, theirs := 0, 0
	for range seconds {
		ours += equal(t, a, b)
		for range each {
			if x.Uint64() == y.Uint64() {
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
