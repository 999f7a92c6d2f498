package traceid_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// forger makes forged IDs, the same ones in every run.
type forger struct {
	*testing.T
	*rand.Rand
}

func joined(high, low uint64) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

func halves(id trace.TraceID) (high, low uint64) {
	return binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
}

func (f forger) between(from, to time.Time) time.Time {
	return from.Add(time.Duration(f.Int64N(int64(to.Sub(from)))))
}

// low returns a Randflake ID of codec, as low half or span ID.
func (f forger) low(codec *randflake.Codec, at time.Time) uint64 {
	id, err := codec.Encode(randflake.Parts{Time: at, Node: f.Uint32N(randflake.MaxNode + 1), Sequence: f.Uint32N(randflake.MaxSequence + 1)})
	if err != nil {
		f.Fatal(err)
	}
	return uint64(id)
}

// high returns a clear half with the time of at.
func (f forger) high(at time.Time) uint64 {
	high, _ := halves(traceid.Min(at))
	return high | f.Uint64N(1<<23)
}

// made returns an ID of codec made at a time in [from, to).
func (f forger) made(codec *randflake.Codec, from, to time.Time) trace.TraceID {
	at := f.between(from, to)
	return joined(f.high(at), f.low(codec, at))
}

// Ten million forged IDs of several kinds, or a tenth of them except at night: as many pass as
// calculated. "strict" is a default
// verifier with two secrets. So few pass it that a count proves little; therefore "wide" has a
// tolerance of half a day, for which the same calculation predicts hundreds. "plausible" is strict
// with the second rule, for five minutes.
func TestTenMillionForgeries(t *testing.T) {
	keyring := newKeyring(t, fleetSecret, "the last secret!")
	fleet, another := keyring.Codec(), newKeyring(t, "another secret!!").Codec()
	const (
		day, wide = 24 * time.Hour, 12 * time.Hour
		plausible = 5 * time.Minute
		skew      = time.Minute
	)
	clock := traceid.WithClock(fixed(noon))
	verifiers := [...]*traceid.Verifier{
		traceid.NewVerifier(keyring, clock),
		traceid.NewVerifier(keyring, clock, traceid.WithTolerance(wide)),
		traceid.NewVerifier(keyring, clock, traceid.WithPlausible(plausible)),
	}
	// The chance of a low half made without a secret: the window in seconds, times the number of
	// secrets, divided by 2^30.
	agrees := func(tolerance time.Duration) float64 {
		return (2*tolerance.Seconds() + 1) * float64(len(keyring.Codecs())) / (1 << 30)
	}
	strictly, widely := agrees(2*time.Second), agrees(wide)
	// The chance that random clear bits lie in a window of this length.
	within := func(window time.Duration) float64 { return float64(window.Milliseconds()) / (1 << 41) }
	// The chance that a time of the last day is plausible.
	recent := plausible.Seconds() / day.Seconds()

	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	one := forger{t, rand.New(rand.NewPCG(1, 2))}.made(fleet, ago(20*time.Second), ago(10*time.Second))
	oneHigh, oneLow := halves(one)
	second := fleet.Decode(randflake.ID(oneLow)).Time

	kinds := []struct {
		name  string
		tries int
		forge func(f forger, i int) trace.TraceID
		want  [len(verifiers)]float64 // shares
	}{
		{"128 random bits", 2_000_000,
			func(f forger, _ int) trace.TraceID { return joined(f.Uint64(), f.Uint64()) },
			[...]float64{within(day+skew) * strictly, within(day+skew) * widely, within(plausible + skew)}},
		{"a time in the last day, 64 random bits", 3_000_000,
			func(f forger, _ int) trace.TraceID { return joined(f.high(f.between(ago(day), noon)), f.Uint64()) },
			[...]float64{strictly, widely, recent}},
		{"a real ID, one bit of its low half flipped", 500_000,
			func(f forger, i int) trace.TraceID {
				high, low := halves(f.made(fleet, ago(day), noon))
				return joined(high, low^1<<(i%64))
			},
			[...]float64{strictly, widely, recent}},
		{"a real ID, many bits of its low half flipped", 1_000_000,
			func(f forger, _ int) trace.TraceID {
				high, low := halves(f.made(fleet, ago(day), noon))
				return joined(high, low^(f.Uint64()|1))
			},
			[...]float64{strictly, widely, recent}},
		{"another secret's, from the last day", 1_500_000,
			func(f forger, _ int) trace.TraceID { return f.made(another, ago(day), noon) },
			[...]float64{strictly, widely, recent}},
		{"ours, older than a day", 1_000_000,
			func(f forger, _ int) trace.TraceID {
				return f.made(fleet, time.Unix(randflake.Epoch, 0), ago(day+time.Millisecond))
			},
			[len(verifiers)]float64{}},
		{"one real low half, clear halves 10 s around it", 500_000,
			func(f forger, _ int) trace.TraceID { return joined(oneHigh-10_000<<23+f.Uint64N(20_000<<23), oneLow) },
			[...]float64{0.25, 1, 1}}, // 5 s of 20
		{"a real low half or span ID, a fitting clear half", 250_000,
			func(f forger, _ int) trace.TraceID {
				return joined(f.high(second.Add(-2*time.Second).Add(time.Duration(f.Int64N(int64(5*time.Second))))), oneLow)
			},
			[...]float64{1, 1, 1}},
		{"a real ID again", 250_000,
			func(f forger, _ int) trace.TraceID { return f.made(fleet, ago(day), noon) },
			[...]float64{1, 1, 1}},
	}

	rows := make([]string, len(kinds))
	t.Cleanup(func() { t.Log("what passed, and in brackets the calculated number:\n" + strings.Join(rows, "")) })
	for i, k := range kinds {
		if testing.Short() {
			k.tries /= 50
		} else if os.Getenv("TRACEFLAKE_NIGHTLY") == "" {
			k.tries /= 10
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			f := forger{t, rand.New(rand.NewPCG(3, uint64(i)))}
			var passed [len(verifiers)]int
			for i := range k.tries {
				id := k.forge(f, i)
				for j, v := range verifiers {
					if v.Verify(id) {
						passed[j]++
					}
				}
			}
			rows[i] = fmt.Sprintf("%-48s %8d", k.name, k.tries)
			for j, got := range passed {
				n, share := float64(k.tries), k.want[j]
				rows[i] += fmt.Sprintf("   %s %d (%s)", [...]string{"strict", "wide", "plausible"}[j], got, short(n*share))
				exact := share == 0 || share == 1
				if d := math.Abs(float64(got) - n*share); exact && d > 0 || d > 6*math.Sqrt(n*share*(1-share))+3 {
					t.Errorf("of %d, verifier %d accepts %d, want %s by calculation", k.tries, j, got, short(n*share))
				}
			}
			rows[i] += "\n"
		})
	}
}

func short(x float64) string {
	if x == 0 || x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1g", x)
}
