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
	var differ [2][randomBits][randomBits]int // within an ID, and across successive ones
	var bits, before uint64
	for range n {
		id := next()
		bits, before = binary.BigEndian.Uint64(id[8:]), bits
		for a := range randomBits {
			ones[a] += int(bits >> a & 1)
			within, across := bits^-(bits>>a&1), before^-(bits>>a&1)
			for b := range randomBits {
				differ[0][a][b] += int(within >> b & 1)
				differ[1][a][b] += int(across >> b & 1)
			}
		}
	}
	worst := 0.0
	off := func(count int) { worst = max(worst, math.Abs(float64(2*count-n))/math.Sqrt(float64(n))) }
	for a := range randomBits {
		off(ones[a])
		for b := range randomBits {
			if b != a {
				off(differ[0][a][b])
			}
			off(differ[1][a][b])
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
	var last uint64
	r := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func() uint64{
		"one bit often set":   func() uint64 { return r.Uint64() | r.Uint64()&r.Uint64()&1<<40 },
		"two bits equal":      func() uint64 { x := r.Uint64(); return x&^2 | x>>20&1<<1 },
		"one bit of the last": func() uint64 { last = r.Uint64()&^1 | last>>9&1; return last },
	} {
		if worst := worstBit(n, func() (id trace.TraceID) {
			binary.BigEndian.PutUint64(id[8:], next())
			return id
		}); worst <= limit {
			t.Errorf("%s passes with %.1f standard deviations", name, worst)
		}
	}
}
