package traceid_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// forger generates the halves of forged IDs, the same ones in every run.
type forger struct{ *rand.Rand }

func (f forger) between(from, to time.Time) time.Time {
	return from.Add(time.Duration(f.Int64N(int64(to.Sub(from)))))
}

// high returns a clear half with the time of at.
func (f forger) high(at time.Time) uint64 {
	least := traceid.Min(at)
	return binary.BigEndian.Uint64(least[:8]) | f.Uint64N(1<<layout.SequenceBits)
}

// generated returns the halves of an ID of codec at a time in [from, to).
func (f forger) generated(codec *randflake.Codec, from, to time.Time) (high, low uint64) {
	at := f.between(from, to)
	id, err := codec.Encode(randflake.Parts{Time: at, Node: f.Uint32N(randflake.MaxNode + 1),
		Sequence: f.Uint32N(1 << 17)})
	if err != nil {
		panic(err)
	}
	return f.high(at), uint64(id)
}

// Ten million forged IDs of several kinds, or a tenth of them except at night: as many pass as
// calculated. "strict" is a default verifier with two secrets. So few pass it that a count proves
// little; "wide" therefore counts the IDs whose halves are at most half a day apart, for which the
// same calculation predicts hundreds. "plausible" is strict with the second rule, for five minutes.
func TestTenMillionForgeries(t *testing.T) {
	keyring := newKeyring(t, fleetSecret, lastSecret)
	fleet, another := keyring.Codec(), newKeyring(t, anotherSecret).Codec()
	const day, wide, plausible, skew = 24 * time.Hour, 12 * time.Hour, 5 * time.Minute, time.Minute
	clock, codecs := traceid.WithClock(fixed(noon)), keyring.Codecs()
	verifiers := [...]func(trace.TraceID) bool{
		traceid.NewVerifier(keyring, clock).Verify,
		func(id trace.TraceID) bool {
			for _, c := range codecs {
				if d := traceid.Time(id).Sub(c.Decode(traceid.Low(id)).Time); -wide <= d &&
					d < wide+time.Second {
					return traceid.Plausible(id, noon, day, skew)
				}
			}
			return false
		},
		traceid.NewVerifier(keyring, clock, traceid.WithPlausible(plausible)).Verify,
	}
	// The chance of a low half forged without a secret: the window in seconds, times the number of
	// secrets, divided by 2^30.
	agrees := func(tolerance time.Duration) float64 {
		return (2*tolerance.Seconds() + 1) * 2 / (1 << 30)
	}
	strictly, widely := agrees(2*time.Second), agrees(wide)
	// The chance that random clear bits lie in a window of this length.
	within := func(window time.Duration) float64 {
		return float64(window.Milliseconds()) / (1 << 41)
	}
	// The shares of forgeries with a time of the last day that pass.
	recent := [...]float64{strictly, widely, plausible.Seconds() / day.Seconds()}

	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	oneHigh, oneLow := forger{rand.New(rand.NewPCG(1, 2))}.generated(fleet, ago(20*time.Second),
		ago(10*time.Second))

	for i, k := range []struct {
		name  string
		tries int
		forge func(f forger, i int) (high, low uint64)
		want  [len(verifiers)]float64 // shares
	}{
		{"128 random bits", 2_000_000,
			func(f forger, _ int) (high, low uint64) { return f.Uint64(), f.Uint64() },
			[...]float64{within(day+skew) * strictly, within(day+skew) * widely,
				within(plausible + skew)}},
		{"a time in the last day, 64 random bits", 4_500_000,
			func(f forger, _ int) (high, low uint64) {
				return f.high(f.between(ago(day), noon)), f.Uint64()
			}, recent},
		{"a real ID, one bit of its low half flipped", 500_000,
			func(f forger, i int) (high, low uint64) {
				high, low = f.generated(fleet, ago(day), noon)
				return high, low ^ 1<<(i%64)
			}, recent},
		{"a real ID, many bits of its low half flipped", 1_000_000,
			func(f forger, _ int) (high, low uint64) {
				high, low = f.generated(fleet, ago(day), noon)
				return high, low ^ (f.Uint64() | 1)
			}, recent},
		{"another secret's, from the last day", 1_500_000,
			func(f forger, _ int) (high, low uint64) {
				return f.generated(another, ago(day), noon)
			}, recent},
		{"one real low half, clear halves 10 s around it", 500_000,
			func(f forger, _ int) (high, low uint64) {
				return oneHigh - 10_000<<23 + f.Uint64N(20_000<<23), oneLow
			},
			[...]float64{0.25, 1, 1}}, // 5 s of 20
	} {
		if testing.Short() {
			k.tries /= 50
		} else if os.Getenv("TRACEFLAKETEST_NIGHTLY") == "" {
			k.tries /= 10
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			f := forger{rand.New(rand.NewPCG(3, uint64(i)))}
			var passed [len(verifiers)]int
			for i := range k.tries {
				var id trace.TraceID
				high, low := k.forge(f, i)
				binary.BigEndian.PutUint64(id[:8], high)
				binary.BigEndian.PutUint64(id[8:], low)
				for j, verify := range verifiers {
					if verify(id) {
						passed[j]++
					}
				}
			}
			row := fmt.Sprintf("of %d pass, and in brackets the calculated number:", k.tries)
			for j, got := range passed {
				n, share := float64(k.tries), k.want[j]
				row += fmt.Sprintf(" %s %d (%.2g)", [...]string{"strict", "wide", "plausible"}[j],
					got, n*share)
				exact := share == 1
				if d := math.Abs(float64(got) - n*share); exact && d > 0 ||
					d > 6*math.Sqrt(n*share*(1-share))+3 {
					t.Errorf("too many or too few")
				}
			}
			t.Log(row)
		})
	}
}
