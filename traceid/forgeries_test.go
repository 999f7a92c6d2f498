package traceid_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Of forged IDs with a time of the last day, none passes a verifier with two secrets: the chance is
// 10 in 2^30. One in 288 is plausible, by the rule of five minutes, whatever is forged. Of a
// real low half with another clear half, those pass whose times agree.
func TestForgeries(t *testing.T) {
	keyring, another := newKeyring(t, fleetSecret, lastSecret), newKeyring(t, anotherSecret)
	clock := traceid.WithClock(fixed(noon))
	verifier := traceid.NewVerifier(keyring, clock, traceid.WithPlausible(5*time.Minute))
	r := rand.New(rand.NewPCG(1, 2))
	clearHalf := func(at time.Time) uint64 {
		least := traceid.Min(at)
		return binary.BigEndian.Uint64(least[:8]) | r.Uint64N(1<<layout.SequenceBits)
	}
	low := func(k *randflake.Keyring, at time.Time) uint64 {
		id, err := k.Codec().Encode(randflake.Parts{Time: at,
			Node: r.Uint32N(randflake.MaxNode + 1), Sequence: r.Uint32N(1 << 17)})
		if err != nil {
			t.Fatal(err)
		}
		return uint64(id)
	}
	taken := low(keyring, noon.Add(-20*time.Second))
	const day, share = 24 * time.Hour, 1.0 / 288
	for name, forge := range map[string]struct {
		low    func(at time.Time) uint64
		span   time.Duration // before noon
		passes [2]float64    // shares of Verify and Plausible
	}{
		"random": {func(time.Time) uint64 { return r.Uint64() }, day, [...]float64{0, share}},
		"a bit flipped": {func(at time.Time) uint64 { return low(keyring, at) ^ 1<<r.IntN(64) },
			day, [...]float64{0, share}},
		"another secret": {func(at time.Time) uint64 { return low(another, at) }, day,
			[...]float64{0, share}},
		"another time": {func(time.Time) uint64 { return taken }, 40 * time.Second,
			[...]float64{5. / 40, 1}},
	} {
		const n = 25_000
		var passed [2]int
		for range n {
			var id trace.TraceID
			at := noon.Add(-time.Duration(r.Int64N(int64(forge.span))))
			binary.BigEndian.PutUint64(id[:8], clearHalf(at))
			binary.BigEndian.PutUint64(id[8:], forge.low(at))
			for i, ok := range []bool{verifier.Verify(id), verifier.Plausible(id)} {
				if ok {
					passed[i]++
				}
			}
		}
		for i, share := range forge.passes {
			off := float64(passed[i]) - n*share
			if math.Abs(off) > 6*math.Sqrt(n*share*(1-share)) {
				t.Errorf("%s: %d of %d pass, want %.0f", name, passed[i], n, n*share)
			}
		}
	}
}
