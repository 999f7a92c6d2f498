package turns

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func result(ns map[string][]float64) *Result { return &Result{Goroutines: 1, ns: ns} }

func TestComparisonWithinARound(t *testing.T) {
	// The machine gets slower and slower; a always costs twice as much as b.
	ns := make(map[string][]float64)
	for i := 1; i <= 9; i++ {
		ns["b"] = append(ns["b"], float64(100*i*i))
		ns["a"] = append(ns["a"], float64(200*i*i))
	}
	if got := result(ns).Ratio("a", "b"); got.Mid != 2 || got.Low != 2 || got.High != 2 {
		t.Errorf("ratio %+v, want 2", got)
	}
	if got := result(ns).Difference("a", "b"); got.Mid != 2500 || got.Low >= 2500 || got.High <= 2500 {
		t.Errorf("difference %+v, want 2500 within an interval", got)
	}
}

func TestTurnsWithoutTheirCPUsAreLeftOut(t *testing.T) {
	nan := math.NaN()
	r := result(map[string][]float64{
		"a": {2, 2, nan, 2, 2, 2, 2, 2, 2, 2},
		"b": {1, 1, 1, nan, 1, 1, 1, 1, 1, 1},
	})
	if got := r.Ratio("a", "b"); got.Mid != 2 || got.Of != 8 || got.Left != 2 {
		t.Errorf("%+v", got)
	}
	for _, few := range []Interval{Median([]float64{1, 2, 3}), r.Ratio("a", "nobody")} {
		if !math.IsNaN(few.Mid) || !math.IsNaN(few.From(1)) {
			t.Errorf("%+v: a figure from too few turns", few)
		}
	}
}

// The interval contains the true median in about 95 of 100 runs.
func TestIntervalContainsTheTrueMedian(t *testing.T) {
	held, state := 0, uint64(1)
	for range 2000 {
		values := make([]float64, 50)
		for i := range values {
			state = state*6364136223846793005 + 1442695040888963407
			values[i] = float64(state>>11) / (1 << 53)
		}
		if i := Median(values); i.Low <= 0.5 && 0.5 <= i.High && i.Low <= i.Mid && i.Mid <= i.High {
			held++
		}
	}
	if held < 1880 || held > 1980 {
		t.Errorf("in %d of 2000 runs", held)
	}
}

func spin(d time.Duration) func(int) {
	return func(n int) {
		for end := time.Now().Add(time.Duration(n) * d); time.Now().Before(end); {
		}
	}
}

func TestFlatOutMeasures(t *testing.T) {
	slow, fast := Subject{"slow", spin(20 * time.Microsecond)}, Subject{"fast", spin(10 * time.Microsecond)}
	for _, goroutines := range []int{1, runtime.GOMAXPROCS(0)} {
		r := FlatOut([]Subject{slow, fast}, goroutines, 60, time.Millisecond)
		got := r.Ratio("slow", "fast")
		if math.IsNaN(got.Mid) {
			t.Skip("the machine is too busy: ", got)
		}
		if got.Mid < 1.8 || got.Mid > 2.2 {
			t.Errorf("%d goroutines: ratio %+v, want 2", goroutines, got)
		}
	}
}

func TestSleepingTurnsAreLeftOut(t *testing.T) {
	r := FlatOut([]Subject{{"sleeper", func(n int) { time.Sleep(time.Duration(n) * 100 * time.Microsecond) }}}, 1, 2, time.Millisecond)
	if got := r.Ratio("sleeper", "sleeper"); got.Left == 0 || got.Of != 0 {
		t.Errorf("%+v: want every turn left out", got)
	}
	if ns := r.Ns("sleeper"); !math.IsNaN(ns) {
		t.Errorf("%g ns without a CPU", ns)
	}
}

func TestSequentialGoroutinesAreLeftOut(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := FlatOut([]Subject{{"one after the other", spin(time.Microsecond)}}, 2, 2, time.Millisecond)
	if got := r.Ratio("one after the other", "one after the other"); got.Of != 0 {
		t.Errorf("%+v: two goroutines on one CPU", got)
	}
}

// Each period has one burst of each subject, and the time of the clock is subtracted.
func TestPacedKeepsThePace(t *testing.T) {
	var calls atomic.Int64
	var at []time.Time
	s := []Subject{
		{"counted", func(n int) { calls.Add(int64(n)); at = append(at, time.Now()) }},
		{"nothing", func(int) {}},
		{"10 µs", spin(10 * time.Microsecond)},
	}
	const periods, n = 10, 20
	r := Paced(s, 1, n, periods, Pace{Burst: 3, Every: time.Millisecond})
	if got := r.Ratio("10 µs", "10 µs"); got.Left > 0 || math.IsNaN(got.Mid) {
		t.Skipf("the machine is too busy: in %d of %d rounds most bursts were late", got.Left, got.Left+got.Of)
	}
	if got := calls.Load(); got > 3*n*periods*patience || got < 3*n*periods/2 {
		t.Errorf("%d calls, want about %d", got, 3*n*periods)
	}
	gaps := make([]float64, len(at)-1)
	for i := range gaps {
		gaps[i] = float64(at[i+1].Sub(at[i]))
	}
	slices.Sort(gaps)
	if g := time.Duration(gaps[len(gaps)/2]); g < 500*time.Microsecond || g > 2*time.Millisecond {
		t.Errorf("a burst each %v, want 1 ms", g)
	}
	if ns := r.Ns("nothing"); !(math.Abs(ns) < 1000) {
		t.Errorf("an empty burst takes %g ns", ns)
	}
	if ns := r.Ns("10 µs"); !(ns > 9_000 && ns < 15_000) {
		t.Errorf("10 µs take %g ns", ns)
	}
}

func TestTheClockIsSubtracted(t *testing.T) {
	p := Pace{Burst: 4}
	// Outliers, such as an interrupted burst, do not count.
	if got := p.each([]float64{130, 130, 10, 9000, 130, 130, 130, 130}, []float64{50, 50, 50, 50, 800}); got != 20 {
		t.Errorf("%g ns, want 20", got)
	}
	if got := p.each([]float64{130}, nil); !math.IsNaN(got) {
		t.Errorf("%g ns, with nothing to subtract", got)
	}
}
