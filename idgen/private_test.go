package idgen

import (
	"slices"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/randflake"
)

// repeating returns a draw of a machine whose randomness repeats itself: all of its copies draw
// the same.
func repeating() func([]byte) {
	draws := byte(0)
	return func(b []byte) {
		draws++
		for i := range b {
			b[i] = draws
		}
	}
}

// fill returns the source's next n IDs.
func fill(t *testing.T, s Source, n int) []randflake.ID {
	t.Helper()
	ids := make([]randflake.ID, n)
	if _, _, err := s.Fill(ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

// Every bit of the 128 that are drawn for the secret matters.
func TestSecretIsDrawnWhole(t *testing.T) {
	seen := map[randflake.ID]bool{}
	for flip := range 128 {
		draws := 0
		p := newPrivate(newClock(noon).Now, func(b []byte) {
			clear(b)
			if draws++; draws == 1 { // the secret; the rest are places
				b[flip/8] = 1 << (flip % 8)
			}
		})
		id := fill(t, p, 1)[0]
		if seen[id] || draws != 2 {
			t.Errorf("bit %d of the secret makes no difference, or %d draws", flip, draws)
		}
		seen[id] = true
	}
}

// A step back by more than the source tolerates causes one new secret; a smaller one causes none.
func TestPrivateSourceTakesANewSecret(t *testing.T) {
	c := newClock(noon.Truncate(time.Second))
	p := newPrivate(c.Now, entropy.Read)
	fill(t, p, 1)
	first := p.generator.Load()
	c.add(-1900 * time.Millisecond)
	if fill(t, p, 1); p.generator.Load() != first {
		t.Error("a small step caused a new secret")
	}
	c.add(-1100 * time.Millisecond) // three seconds before the first, counted in whole ones
	fill(t, p, 1)
	second := p.generator.Load()
	if fill(t, p, 1); second == first || p.generator.Load() != second {
		t.Error("no new secret after a large step, or one without a step")
	}
	c.set(time.Unix(0, 0))
	if n, _, err := p.Fill(make([]randflake.ID, 10)); n != 0 || err == nil ||
		p.generator.Load() != second {
		t.Errorf("at 1970: %d, %v", n, err)
	}
}

// Copies of a process whose kernels differ after the copy generate different IDs from the next
// second on, without any sign that they were copied. In the second of the copy all IDs are equal,
// as the documentation says, and if nothing ever differs they never part.
func TestCopiesPart(t *testing.T) {
	const each, seconds = 2000, 100 // IDs in a second
	c := newClock(noon)
	a, b := newPrivate(c.Now, repeating()), newPrivate(c.Now, repeating())
	// This compares the sources themselves, since a generator that moves to another processor
	// leaves some of its IDs on the first.
	equal := func() (count int) {
		t.Helper()
		all := slices.Concat(fill(t, a, each), fill(t, b, each))
		slices.Sort(all)
		return 2*each - len(slices.Compact(all))
	}
	for range 3 {
		c.pass(time.Second)
		if n := equal(); n != each { // and draws the place of this second
			t.Fatalf("%d of %d IDs are equal although all draws are: the test is meaningless", n,
				each)
		}
	}
	a.draw = entropy.Read
	if n := equal(); n != each {
		t.Errorf("%d of %d IDs of the copy's second are equal: want all", n, each)
	}
	for second := range seconds {
		c.pass(time.Second)
		if n := equal(); n != 0 {
			t.Errorf("%d IDs are equal %d s after the copy", n, second+1)
		}
	}
}
