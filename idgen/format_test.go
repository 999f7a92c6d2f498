package idgen

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
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
	Threads struct {
		Threads, N int
		UnixMS     int64 `json:"unix_ms"`
		Clear      number
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

func TestFormatThreads(t *testing.T) {
	v := vectors.Read[format](t).Threads
	g := New(WithClock(newClock(time.UnixMilli(v.UnixMS)).Now))
	seen := make([][]uint64, v.Threads)
	var group sync.WaitGroup
	for i := range seen {
		group.Go(func() {
			for range v.N {
				id, _ := g.NewIDs(context.Background())
				seen[i] = append(seen[i], half(id))
			}
		})
	}
	group.Wait()
	all := slices.Concat(seen...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != v.Threads*v.N || all[0] != uint64(v.Clear) {
		t.Errorf("%d clear halves from %016x on, want %d from %016x on", n, all[0], v.Threads*v.N,
			v.Clear)
	}
}

// If a goroutine is stopped each time that it reads the clock, the progress of others is not
// mistaken for a step of the clock.
func TestFormatStopped(t *testing.T) {
	v := vectors.Read[format](t).Stopped
	for _, stops := range []int{1, 4} {
		c := newClock(time.UnixMilli(v.UnixMS))
		g := New(WithClock(c.Now), WithSource(&tagged{clock: c.time}))
		var made []number
		var stop func()
		generate := func() {
			id, _ := g.NewIDs(t.Context())
			if made = append(made, number(half(id))); len(made) < stops {
				c.hook = stop
			}
		}
		stop = func() {
			c.hook = nil
			// the reading is old when it returns
			c.pass(time.Duration(v.MeanwhileMS-v.UnixMS) * time.Millisecond)
			generate()
		}
		c.hook = stop
		generate()
		if len(made) != stops+1 || !slices.IsSorted(made) || g.steps.Load() != 0 ||
			stops == 1 && !slices.Equal(made, v.Clears) {
			t.Errorf("stopped %d times: %016x, %d steps; want %016x for one", stops, made,
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
	off := func(count int) {
		worst = max(worst,
			math.Abs(float64(2*count-n))/math.Sqrt(float64(n)))
	}
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
	if os.Getenv("TRACEFLAKETEST_NIGHTLY") != "" {
		n = 200_000
	}
	clock := newClock(noon)
	reportstest.Collect(t)
	for name, g := range map[string]*Generator{
		"leased":   New(WithClock(clock.Now), WithSource(newSource(t, clock.Now))),
		"private":  New(WithClock(clock.Now)),
		"refusing": New(WithClock(clock.Now), WithSource(refusing)),
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
