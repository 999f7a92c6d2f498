package idgen

import (
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/internal/vectors"
	"github.com/traceflake/traceflake/randflake"
)

// number is written in hexadecimal digits.
type number uint64

func (n *number) UnmarshalText(text []byte) error {
	u, err := strconv.ParseUint(string(text), 16, 64)
	*n = number(u)
	return err
}

// format is the part of the known answers that is about generators. Ports to other languages are
// tested on them too.
type format struct {
	Generator []struct {
		Name  string
		Last  number
		Steps []struct {
			UnixMS int64 `json:"unix_ms"`
			N      int
			Clear  *number // of the first of N IDs; nil: they are random
		}
	}
	Stopped struct {
		UnixMS      int64 `json:"unix_ms"`
		MeanwhileMS int64 `json:"meanwhile_ms"`
		Clears      []number
	}
	Random struct{ Draws, Halves []number }
}

// Numbers may be skipped. On one processor none is before the clock changes, as long as the IDs
// generated at each time are a power of two; after a step back, which ends the era, the first one
// is. Low halves and span IDs never repeat, and come from the source while its clock is in range.
func TestFormat(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	reportstest.Collect(t)
	for _, v := range vectors.Read[format](t).Generator {
		clock := newClock(noon)
		g := New(WithClock(clock.Now))
		if v.Last != 0 {
			g.sequence.next.Store(uint64(v.Last) + 1)
		}
		c := newChecker(t, g)
		inRange := true
		var last, lastWant uint64
		for i, step := range v.Steps {
			clock.set(time.UnixMilli(step.UnixMS))
			inRange = inRange && step.UnixMS >= randflake.Epoch*1000 &&
				step.UnixMS < randflake.EndOfLife*1000-1000
			var ids []trace.TraceID
			for range step.N {
				id, low, span := idsOf(g)
				c.unique(low)
				c.unique(span)
				ids = append(ids, id)
			}
			if step.Clear == nil {
				if !uniform(ids) {
					t.Errorf("%s, step %d: not random: %s, %s", v.Name, i, ids[0], ids[1])
				}
				continue
			}
			for j, id := range ids {
				got, want := half(id), uint64(*step.Clear)+uint64(j)
				if got-want > 1 || want > lastWant && got <= last {
					t.Errorf("%s, step %d: %016x after %016x, want %016x", v.Name, i, got, last,
						want)
				}
				last, lastWant = got, want
			}
		}
		if inRange && g.Fallbacks() != 0 {
			t.Errorf("%s: %d fallbacks", v.Name, g.Fallbacks())
		}
	}
}

// uniform reports whether each bit is 0 in some IDs and 1 in others.
func uniform(ids []trace.TraceID) bool {
	var ones, zeros trace.TraceID
	for _, id := range ids {
		for i, b := range id {
			ones[i] |= b
			zeros[i] |= ^b
		}
	}
	all := slices.Repeat([]byte{0xff}, len(ones))
	return slices.Equal(ones[:], all) && slices.Equal(zeros[:], all)
}

// If a goroutine is stopped each time that it reads the clock, the progress of others is not
// mistaken for a step of the clock.
func TestFormatStopped(t *testing.T) {
	v := vectors.Read[format](t).Stopped
	for _, stops := range []int{1, 4} {
		c := newClock(time.UnixMilli(v.UnixMS))
		g := New(WithClock(c.Now), WithSource(&tagged{clock: c.time}))
		var got []number
		var stop func()
		generate := func() {
			id, _ := g.NewIDs(t.Context())
			if got = append(got, number(half(id))); len(got) < stops {
				c.hook = stop
			}
		}
		stop = func() {
			c.hook = nil
			c.pass(time.Duration(v.MeanwhileMS-v.UnixMS) * time.Millisecond)
			generate()
		}
		c.hook = stop
		generate()
		if len(got) != stops+1 || !slices.IsSorted(got) || g.steps.Load() != 0 ||
			stops == 1 && !slices.Equal(got, v.Clears) {
			t.Errorf("stopped %d times: %016x, %d steps; want %016x for one", stops, got,
				g.steps.Load(), v.Clears)
		}
	}
}

func TestFormatRandom(t *testing.T) {
	v := vectors.Read[format](t).Random
	r := random{kernel: func() uint64 {
		next := v.Draws[0]
		v.Draws = v.Draws[1:]
		return uint64(next)
	}}
	for _, want := range v.Halves {
		if got := r.id(); got != uint64(want) {
			t.Errorf("%016x, want %016x", got, want)
		}
	}
}

// W3C Trace Context level 2 requires that the low 56 bits of traces with the random flag are
// random. One of 168 counts is beyond six standard deviations once in three million runs.
func TestLowBitsAreRandom(t *testing.T) {
	reportstest.Collect(t)
	clock := newClock(noon)
	for name, g := range map[string]*Generator{
		"leased":   New(WithClock(clock.Now), WithSource(newSource(t, clock.Now))),
		"private":  New(WithClock(clock.Now)),
		"refusing": New(WithClock(clock.Now), WithSource(refusing)),
	} {
		const n = 40_000 // a standard deviation is 100
		var ones [56]int
		for range n {
			_, low, _ := idsOf(g)
			for i := range ones {
				ones[i] += int(low >> i & 1)
			}
		}
		if slices.Min(ones[:]) < n/2-600 || slices.Max(ones[:]) > n/2+600 {
			t.Errorf("%s: of %d IDs, bits are set in %d", name, n, ones)
		}
	}
}
