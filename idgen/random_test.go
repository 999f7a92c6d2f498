package idgen

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

const randomBits = 56 // the low bits, by W3C Trace Context level 2

// worstBit returns the largest deviation, in standard deviations, among the low bits of n IDs:
// each bit by itself, and each pair of bits within an ID and across successive IDs.
func worstBit(n int, next func() trace.TraceID) float64 {
	var ones [randomBits]int
	var within, across [randomBits][randomBits]int // how often two bits differ
	var before uint64
	for i := range n {
		id := next()
		bits := binary.BigEndian.Uint64(id[8:])
		for a := range randomBits {
			x := bits >> a
			ones[a] += int(x & 1)
			same, neighbour := bits^-(x&1), before^-(x&1)
			for b := range a {
				within[a][b] += int(same >> b & 1)
			}
			if i > 0 {
				for b := range randomBits {
					across[a][b] += int(neighbour >> b & 1)
				}
			}
		}
		before = bits
	}
	worst := 0.0
	off := func(count, n int) { worst = max(worst, math.Abs(float64(2*count-n))/math.Sqrt(float64(n))) }
	for a := range randomBits {
		off(ones[a], n)
		for b := range a {
			off(within[a][b], n)
		}
		for b := range randomBits {
			off(across[a][b], n-1)
		}
	}
	return worst
}

// W3C Trace Context level 2 requires it of traces with the random flag. One of 4732 counts lies
// beyond six standard deviations once in 100 000 runs.
func TestLowBitsAreRandom(t *testing.T) {
	const limit = 6
	n := 20_000
	if os.Getenv("TRACEFLAKE_NIGHTLY") != "" {
		n = 200_000
	}
	clock := newClock(noon)
	collectErrors(t)
	for name, g := range map[string]*Generator{
		"leased":   New(WithClock(clock), WithSource(newSource(t, clock))),
		"private":  New(WithClock(clock)),
		"refusing": New(WithClock(clock), WithSource(refusing)),
	} {
		worst := worstBit(n, func() trace.TraceID {
			id, _ := g.NewIDs(t.Context())
			return id
		})
		t.Logf("%s: %.2f standard deviations", name, worst)
		if worst > limit {
			t.Errorf("%s: a bit or a pair of bits is %.1f standard deviations off", name, worst)
		}
	}

	// IDs that are not random are detected, even if each bit is fair.
	var count uint64
	r := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func() uint64{
		"a counter":            func() uint64 { count++; return count },
		"one bit often set":    func() uint64 { return r.Uint64() | r.Uint64()&r.Uint64()&1<<40 },
		"two bits equal":       func() uint64 { x := r.Uint64(); return x&^2 | x>>20&1<<1 },
		"one bit of the last":  func() uint64 { count = r.Uint64()&^1 | count>>9&1; return count },
		"the low 16 bits fast": func() uint64 { count++; return r.Uint64()&^0xffff | count&0xffff },
	} {
		if worst := worstBit(n, func() (id trace.TraceID) {
			binary.BigEndian.PutUint64(id[8:], next())
			return id
		}); worst <= limit {
			t.Errorf("%s passes with %.1f standard deviations", name, worst)
		}
	}
}
