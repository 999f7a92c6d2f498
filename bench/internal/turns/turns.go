// Package turns compares the costs of calls that do the same work. They take
// short turns, in one run and in an order that is reversed each round, so that
// other load on the machine affects all of them alike.
//
// A figure is the median over the rounds. A comparison is the median of its values in the rounds,
// with an interval that contains the true median in 95 of 100 runs. The noise of a run is the
// difference between two entries of the same code.
package turns

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Subject is something whose cost is measured.
type Subject struct {
	Name string
	Run  func(n int) // n calls, in one goroutine
}

// Result holds nanoseconds per call of each subject, by round; with several goroutines, those of
// each goroutine. NaN stands for a turn that did not have its CPUs.
type Result struct {
	Goroutines int
	ns         map[string][]float64
}

// turn makes the calls of a round.
type turn func(s []Subject, round int) []float64

// patience limits the duration of n rounds to this multiple of the expected time: a round is
// repeated if a turn did not have its CPUs, and the machine may be busy.
const patience = 3

// rounds makes n rounds, each of which should take about the given length.
func rounds(n, goroutines int, s []Subject, length time.Duration, t turn) *Result {
	r := &Result{Goroutines: goroutines, ns: make(map[string][]float64)}
	end := time.Now().Add(patience * time.Duration(n) * length)
	for round, good := 0, 0; good < n && (round < n/2 || time.Now().Before(end)); round++ {
		all := t(s, round)
		for i, ns := range all {
			r.ns[s[i].Name] = append(r.ns[s[i].Name], ns)
		}
		if !slices.ContainsFunc(all, math.IsNaN) {
			good++
		}
	}
	return r
}

// Add appends the rounds of another result with the same subjects.
func (r *Result) Add(other *Result) {
	if r.ns == nil {
		r.ns, r.Goroutines = make(map[string][]float64), other.Goroutines
	}
	for name, ns := range other.ns {
		r.ns[name] = append(r.ns[name], ns...)
	}
}

// FlatOut gives each subject a turn of about the given length in each round. In a turn every
// goroutine calls it as often as possible.
func FlatOut(s []Subject, goroutines, n int, length time.Duration) *Result {
	calls := make([]int, len(s))
	for i := range s {
		calls[i] = calibrate(s[i], length)
	}
	return rounds(n, goroutines, s, length*time.Duration(len(s)), func(s []Subject, round int) []float64 {
		ns := make([]float64, len(s))
		for i := range s {
			if round%2 == 1 {
				i = len(s) - 1 - i
			}
			ns[i] = flatOut(s[i], goroutines, calls[i])
		}
		return ns
	})
}

// calibrate returns how many calls take about the length of a turn. It takes the fastest of some
// tries, because a slow one was disturbed.
func calibrate(s Subject, length time.Duration) int {
	for n := 1; ; n *= 4 {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			start := time.Now()
			s.Run(n)
			best = min(best, time.Since(start))
		}
		if best > length/8 {
			return max(1, int(float64(n)*float64(length)/float64(best)))
		}
	}
}

// enough is the fraction of a turn for which each goroutine must have had a CPU. All goroutines
// must begin within the rest of the turn.
const enough = 0.9

func flatOut(s Subject, goroutines, calls int) float64 {
	runtime.GC() // no subject pays for another's garbage
	began, ended := make([]time.Time, goroutines), make([]time.Time, goroutines)
	had := make([]time.Duration, goroutines)
	together(goroutines, func(int) {
		s.Run(max(calls/32, 1)) // warms the caches after the collection
	}, func(i int) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cpu := threadTime()
		began[i] = time.Now()
		s.Run(calls)
		ended[i] = time.Now()
		had[i] = threadTime() - cpu
	})
	// Goroutines that run one after the other do not contend, so their figures look too good.
	// Their ends are no sign of that, because contention may be unfair.
	apart := slices.MaxFunc(began, time.Time.Compare).Sub(slices.MinFunc(began, time.Time.Compare))
	var sum time.Duration
	for i := range goroutines {
		wall := ended[i].Sub(began[i])
		if float64(had[i]) < enough*float64(wall) || float64(apart) > (1-enough)*float64(wall) {
			return math.NaN()
		}
		sum += wall
	}
	return float64(sum) / float64(goroutines*calls)
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // only for invalid arguments
	}
	return time.Duration(t.Nano())
}

// together runs prepare and then run in goroutines, at most one per CPU; all of them begin run at
// once.
func together(goroutines int, prepare, run func(i int)) {
	if goroutines == 1 {
		prepare(0)
		run(0)
		return
	}
	var ready atomic.Int64
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			prepare(i)
			for ready.Add(1); ready.Load() < int64(goroutines); {
			}
			run(i)
		})
	}
	all.Wait()
}

// Pace is a rate: Burst calls, one after the other, in each period Every.
type Pace struct {
	Burst  int
	Every  time.Duration
	Asleep bool // sleep between bursts instead of watching the clock
}

// Paced makes the bursts of all subjects at a pace, each at its own moment of a period, in a
// random order for each period. A round is the given number of periods. Its result for a subject
// is the mean of the middle half of its bursts, because clocks have steps, less the time for
// reading the clock around them.
func Paced(s []Subject, goroutines, n, periods int, p Pace) *Result {
	return rounds(n, goroutines, s, time.Duration(periods)*p.Every, func(s []Subject, round int) []float64 {
		all := make([][]float64, goroutines)
		together(goroutines, func(int) {}, func(i int) { all[i] = p.round(s, round, periods) })
		ns := make([]float64, len(s))
		for i := range s {
			for _, one := range all {
				ns[i] += one[i] / float64(goroutines)
			}
		}
		return ns
	})
}

func (p Pace) round(s []Subject, round, periods int) []float64 {
	empty := Subject{Run: func(int) {}}
	s = append(slices.Clone(s), empty)
	slot := p.Every / time.Duration(len(s))
	bursts := make([][]float64, len(s))
	begin := time.Now()
	order := rand.New(rand.NewPCG(uint64(round), 0))
	for period := range periods {
		for k, i := range order.Perm(len(s)) { // the previous subject affects the caches
			due := begin.Add(time.Duration(period)*p.Every + time.Duration(k)*slot)
			if !p.await(due) {
				continue
			}
			start := time.Now()
			s[i].Run(p.Burst)
			bursts[i] = append(bursts[i], float64(time.Since(start)))
		}
	}
	ns := make([]float64, len(s)-1)
	for i := range ns {
		ns[i] = math.NaN()
		if len(bursts[i]) > periods/2 {
			ns[i] = p.each(bursts[i], bursts[len(ns)])
		}
	}
	return ns
}

// each returns the time of one call in bursts, less the time of empty bursts.
func (p Pace) each(bursts, empty []float64) float64 {
	if len(bursts) == 0 || len(empty) == 0 {
		return math.NaN()
	}
	return (middle(bursts) - middle(empty)) / float64(p.Burst)
}

// late is how late a burst may begin; a later one did not have its CPU.
const late = 20 * time.Microsecond

// await waits until a burst is due and reports whether it is in time.
func (p Pace) await(due time.Time) bool {
	if p.Asleep {
		time.Sleep(time.Until(due))
		return true
	}
	now := time.Now()
	for now.Before(due) {
		now = time.Now()
	}
	return now.Sub(due) < late
}

// Ns returns nanoseconds per call, NaN for a subject that was not measured.
func (r *Result) Ns(name string) float64 {
	return middleOf(slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(r.ns[name]), math.IsNaN))))
}

// middleOf returns the median of sorted values.
func middleOf(sorted []float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Ratio returns the cost of the first subject divided by that of the second.
func (r *Result) Ratio(of, to string) Interval {
	return r.compare(of, to, func(a, b float64) float64 { return a / b })
}

// Difference returns how many nanoseconds more a call of the first subject takes than one of the
// second.
func (r *Result) Difference(of, to string) Interval {
	return r.compare(of, to, func(a, b float64) float64 { return a - b })
}

func (r *Result) compare(of, to string, with func(a, b float64) float64) Interval {
	a, b := r.ns[of], r.ns[to]
	values := make([]float64, min(len(a), len(b)))
	for i := range values {
		values[i] = with(a[i], b[i])
	}
	return Median(values)
}

// Interval is a median and the interval that contains the true median in 95 of 100 runs. With
// fewer values than fewest all three are NaN.
type Interval struct {
	Mid, Low, High float64
	Of, Left       int // the numbers of values used and left out
}

// fewest is the least number of values for an interval.
const fewest = 8

// Median returns the interval of all values that are not NaN.
func Median(values []float64) Interval {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	i := Interval{Mid: math.NaN(), Low: math.NaN(), High: math.NaN(), Of: len(sorted), Left: len(values) - len(sorted)}
	if len(sorted) < fewest {
		return i
	}
	slices.Sort(sorted)
	// The rank of the true median is binomial: n/2, and 0.98 √n to either side.
	half, width := float64(len(sorted)-1)/2, 0.98*math.Sqrt(float64(len(sorted)))
	i.Mid = middleOf(sorted)
	i.Low = sorted[max(0, int(math.Floor(half-width)))]
	i.High = sorted[min(len(sorted)-1, int(math.Ceil(half+width)))]
	return i
}

// From returns how far the interval extends from a value: for a subject compared with itself, the
// noise.
func (i Interval) From(value float64) float64 {
	return max(math.Abs(i.Low-value), math.Abs(i.High-value))
}

// Range returns the interval as text.
func (i Interval) Range() string {
	if math.IsNaN(i.Mid) {
		return "–"
	}
	return fmt.Sprintf("%.2f–%.2f", i.Low, i.High)
}

// String returns the median as text, or the reason why there is none.
func (i Interval) String() string {
	if math.IsNaN(i.Mid) {
		return fmt.Sprintf("not measured: %d of %d turns had their CPUs", i.Of, i.Of+i.Left)
	}
	return fmt.Sprintf("%.2f", i.Mid)
}

// middle returns the mean of the middle half.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := sorted[len(sorted)/4 : len(sorted)-len(sorted)/4]
	var sum float64
	for _, v := range half {
		sum += v
	}
	return sum / float64(len(half))
}
