package idgen

import (
	"encoding/binary"
	"math"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// lowHalves returns n trace IDs made under a fixed secret, so that the result is the same in every
// run.
func lowHalves(t *testing.T, n int) []trace.TraceID {
	clock := newClock(noon)
	g := New(WithClock(clock), WithSource(newSource(t, clock)))
	ids := make([]trace.TraceID, n)
	for i := range ids {
		ids[i], _ = g.NewIDs(t.Context())
		if i%1000 == 0 {
			clock.add(7_000_000)
		}
	}
	return ids
}

// chiSquare checks counts against a uniform distribution: for a fair draw, the statistic lies
// within five standard deviations of its mean, the degrees of freedom, in all but one in a million
// cases.
func chiSquare(t *testing.T, what string, counts []int) {
	t.Helper()
	var n int
	for _, c := range counts {
		n += c
	}
	want := float64(n) / float64(len(counts))
	var x float64
	for _, c := range counts {
		x += (float64(c) - want) * (float64(c) - want) / want
	}
	degrees := float64(len(counts) - 1)
	if d := math.Abs(x-degrees) / math.Sqrt(2*degrees); d > 5 {
		t.Errorf("%s: chi-square %.1f on %.0f degrees of freedom, %.1f standard deviations off", what, x, degrees, d)
	}
}

// Samplers and shards read the low 56 bits.
func TestLowBitsAreUniform(t *testing.T) {
	ids := lowHalves(t, 300_000)
	for position := 9; position < 16; position++ {
		counts := make([]int, 256)
		for _, id := range ids {
			counts[id[position]]++
		}
		chiSquare(t, "byte", counts)
	}
	low, mod, pairs := make([]int, 1024), make([]int, 1024), make([]int, 1024)
	var before uint64
	for _, id := range ids {
		n := binary.BigEndian.Uint64(id[8:]) & (1<<56 - 1)
		low[n>>46]++
		mod[n%1024]++
		pairs[(n>>51)<<5|before>>51]++ // neighbours are independent
		before = n
	}
	chiSquare(t, "1024 buckets of the highest bits", low)
	chiSquare(t, "1024 buckets of the lowest bits", mod)
	chiSquare(t, "1024 buckets of neighbours", pairs)

	// The test itself must be able to fail.
	inner := &testing.T{}
	chiSquare(inner, "the clear half", func() []int {
		counts := make([]int, 1024)
		for _, id := range ids {
			counts[binary.BigEndian.Uint64(id[:8])%1024]++
		}
		counts[0] += len(ids) / 20
		return counts
	}())
	if !inner.Failed() {
		t.Error("chi-square accepts a skewed count as uniform")
	}
}

// keepsShare checks the number of samples: it must lie within five standard deviations of a
// binomial distribution.
func keepsShare(t *testing.T, what string, kept, n int, share float64) {
	t.Helper()
	want := float64(n) * share
	if d := math.Abs(float64(kept) - want); d > 5*math.Sqrt(want*(1-share))+1 {
		t.Errorf("%s: kept %d of %d, want about %.0f", what, kept, n, want)
	}
}

func TestTraceIDRatioBasedKeepsItsShare(t *testing.T) {
	ids := lowHalves(t, 200_000)
	for _, share := range []float64{0.001, 0.01, 0.1, 0.5, 0.9} {
		sampler := sdktrace.TraceIDRatioBased(share)
		var kept int
		for _, id := range ids {
			if sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: id}).Decision == sdktrace.RecordAndSample {
				kept++
			}
		}
		keepsShare(t, sampler.Description(), kept, len(ids), share)
	}
}
