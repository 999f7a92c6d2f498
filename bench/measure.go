package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// subject is something whose cost is measured.
type subject struct {
	name       string // what it does, as benchmarks are named
	gen        string // who does it
	goroutines int
	per        int         // how many IDs, draws or blocks a call makes; 0 is 1
	run        func(n int) // calls it n times, in one goroutine
}

// key names a subject as Go's benchmark format does.
func (s subject) key() string { return key(s.name, s.gen, s.goroutines) }

func key(name, gen string, goroutines int) string {
	return fmt.Sprintf("%s/gen=%s/goroutines=%d", name, gen, goroutines)
}

// calls makes n calls in all, shared between the goroutines.
func (s subject) calls(n int) {
	if s.goroutines == 1 {
		s.run(n)
		return
	}
	var wg sync.WaitGroup
	for i := range s.goroutines {
		wg.Go(func() { s.run(n*(i+1)/s.goroutines - n*i/s.goroutines) })
	}
	wg.Wait()
}

// sample is what one turn cost.
type sample struct {
	calls, per    int
	wall, cpu     time.Duration // cpu: of the whole process, runtime and timers too
	allocs, bytes float64       // a call
}

// wallNs and cpuNs are nanoseconds for one ID, draw or block.
func (s sample) wallNs() float64 { return float64(s.wall) / float64(s.calls*s.per) }
func (s sample) cpuNs() float64  { return float64(s.cpu) / float64(s.calls*s.per) }

func (s sample) allocations() float64 { return s.allocs }
func (s sample) allocated() float64   { return s.bytes }

// samples are those of each subject, in the order of the rounds.
type samples struct {
	subjects []subject
	of       map[string][]sample
}

// measure gives every subject a turn of about the given time in each round;
// every other round goes backwards. Neighbours in the list are neighbours in
// time: put counterparts side by side.
func measure(subjects []subject, rounds int, turn time.Duration) samples {
	m := samples{subjects: subjects, of: make(map[string][]sample)}
	calls := make([]int, len(subjects))
	for i, s := range subjects {
		calls[i] = calibrate(s, turn)
	}
	for round := range rounds {
		for i := range subjects {
			if round%2 == 1 {
				i = len(subjects) - 1 - i
			}
			s := subjects[i]
			m.of[s.key()] = append(m.of[s.key()], take(s, calls[i]))
		}
	}
	return m
}

// addSpans measures spans, each turn with a provider of its own: where its parts
// happen to lie in memory is worth a few per cent.
func (m samples) addSpans(g *generators, turns int, turn time.Duration) {
	for i := range turns {
		list := g.spans()
		if i%2 == 1 {
			slices.Reverse(list)
		}
		for k, s := range measure(list, 1, turn).of {
			m.of[k] = append(m.of[k], s...)
		}
	}
}

// calibrate returns how many calls take about as long as a turn. The fastest
// of some tries counts: a slow one was somebody else's doing.
func calibrate(s subject, turn time.Duration) int {
	for n := 1; ; n *= 4 {
		wall := take(s, n).wall
		for range 2 {
			wall = min(wall, take(s, n).wall)
		}
		if wall > turn/8 {
			return max(1, int(float64(n)*float64(turn)/float64(wall)))
		}
	}
}

func take(s subject, calls int) sample {
	runtime.GC() // nobody pays for another's garbage
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), time.Now()
	s.calls(calls)
	wall := time.Since(start)
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	return sample{
		calls: calls, per: max(s.per, 1), wall: wall, cpu: cpu,
		allocs: float64(after.Mallocs-before.Mallocs) / float64(calls),
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(calls),
	}
}

// cpuTime returns the time that this process has had of all CPUs.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only for arguments that make no sense
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median is of one subject, by value of its samples.
func (m samples) median(key string, value func(sample) float64) float64 {
	s := m.of[key]
	values := make([]float64, len(s))
	for i := range s {
		values[i] = value(s[i])
	}
	return median(values)
}

// ratio is the median of the ratios of two subjects' neighbouring turns.
func (m samples) ratio(of, to string, value func(sample) float64) float64 {
	a, b := m.of[of], m.of[to]
	values := make([]float64, min(len(a), len(b)))
	for i := range values {
		values[i] = value(a[i]) / value(b[i])
	}
	return median(values)
}

// crowded says why turns in several goroutines were not measured in parallel:
// other processes had the CPUs. Goroutines that run one after the other do not
// contend for anything, and look better than they are.
func (m samples) crowded(keys ...string) string {
	for _, k := range keys {
		n := min(m.goroutines(k), runtime.GOMAXPROCS(0))
		had := m.median(k, func(s sample) float64 { return float64(s.cpu) / float64(s.wall) })
		if n > 1 && had < 0.85*float64(n) {
			return fmt.Sprintf("not measured: had %.1f of %d CPUs", had, n)
		}
	}
	return ""
}

// goroutines are 1 for what another process measured.
func (m samples) goroutines(key string) int {
	for _, s := range m.subjects {
		if s.key() == key {
			return s.goroutines
		}
	}
	return 1
}

// add appends what another process measured.
func (m samples) add(key string, s sample) { m.of[key] = append(m.of[key], s) }

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// write writes the samples in Go's benchmark format.
func (m samples) write(w io.Writer) error {
	keys := make([]string, 0, len(m.subjects))
	for _, s := range m.subjects {
		keys = append(keys, s.key())
	}
	for k := range m.of {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys[len(m.subjects):])
	var b strings.Builder
	for _, k := range keys {
		for _, s := range m.of[k] {
			fmt.Fprintf(&b, "Benchmark%s-%d %d %.3f ns/op %.3f cpu-ns/op %.4f B/op %.7f allocs/op\n",
				k, runtime.GOMAXPROCS(0), s.calls, s.wallNs(), s.cpuNs(), s.bytes, s.allocs)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
