package traceid_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// Of forged IDs with a time of the last day, none passes a verifier with two secrets: the chance is
// 10 in 2^30. One in 288 is plausible, by the rule of five minutes, whatever is forged. Of a
// real low half with another clear half, those pass whose times agree.
func TestForgeries(t *testing.T) {
	verifier := traceid.NewVerifier(newKeyring(t, fleetSecret, lastSecret),
		traceid.WithClock(fixed(noon)), traceid.WithPlausible(5*time.Minute))
	r := rand.New(rand.NewPCG(1, 2))
	low := func(secret string, at time.Time) randflake.ID {
		id, err := newKeyring(t, secret).Codec().Encode(randflake.Parts{Time: at,
			Node: r.Uint32N(randflake.MaxNode + 1), Sequence: r.Uint32N(1 << 17)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	taken := low(fleetSecret, noon.Add(-20*time.Second))
	const day, short = 24 * time.Hour, 40 * time.Second
	for name, forge := range map[string]struct {
		low                 func(at time.Time) randflake.ID
		span                time.Duration // before noon
		verified, plausible float64       // shares
	}{
		"random": {func(time.Time) randflake.ID { return randflake.ID(r.Uint64()) }, day, 0,
			1. / 288},
		"a bit flipped": {func(at time.Time) randflake.ID {
			return low(fleetSecret, at) ^ 1<<r.IntN(64)
		}, day, 0, 1. / 288},
		"another secret": {func(at time.Time) randflake.ID { return low(anotherSecret, at) }, day,
			0, 1. / 288},
		"another time": {func(time.Time) randflake.ID { return taken }, short, 5. / 40, 1},
	} {
		const n = 25_000
		verified, plausible := 0., 0.
		for range n {
			at := noon.Add(-time.Duration(r.Int64N(int64(forge.span))))
			id, err := traceid.New(at, r.Uint32N(layout.MaxSequence), forge.low(at))
			if err != nil {
				t.Fatal(err)
			}
			if verifier.Verify(id) {
				verified++
			}
			if verifier.Plausible(id) {
				plausible++
			}
		}
		far := func(passed, share float64) bool {
			return math.Abs(passed-n*share) > 6*math.Sqrt(n*share*(1-share))
		}
		if far(verified, forge.verified) || far(plausible, forge.plausible) {
			t.Errorf("%s: of %d, %v are verified and %v plausible", name, n, verified, plausible)
		}
	}
}
