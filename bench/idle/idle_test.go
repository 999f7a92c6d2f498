package idle

import (
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/bench/internal/child"
)

func TestMain(m *testing.M) {
	jobs := Jobs()
	jobs["fails"] = func([]string) (any, error) { return nil, os.ErrDeadlineExceeded }
	child.Main(jobs)
	os.Exit(m.Run())
}

func TestEveryCaseIsWatched(t *testing.T) {
	c, err := Measure(t.Context(), io.Discard, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Cases {
		w := c[name]
		if len(w.CPU) != parts || len(w.Wakes) != parts || w.Goroutines < 1 {
			t.Errorf("%s: %+v", name, w)
		}
	}
	if work, rest := mean(c[Default].CPU), mean(c[Nothing].CPU); work <= rest {
		t.Errorf("%g ms a second at work, %g asleep", work, rest)
	}
	if got := c.StartedIdle(); got != 0 {
		t.Errorf("an unused generator starts %g goroutines a second", got)
	}
	if text := c.Report(); strings.Contains(text, "NaN") || strings.Count(text, "\n| ") != 1+len(Cases) {
		t.Error(text)
	}
}

// A timer of each millisecond, a goroutine and a busy process are noticed.
func TestCostsOfATimer(t *testing.T) {
	c := make(Costs)
	for _, name := range Cases {
		c[name] = Watched{Goroutines: 3, CPU: make([]float64, parts), Started: make([]float64, parts)}
	}
	if c.StartedAtWork() != 0 || c.StartedIdle() != 0 || c.BeyondDefault().Mid != 0 {
		t.Errorf("%+v: a process that does nothing has costs", c)
	}
	w := c[Traceflake]
	w.CPU, w.Started = []float64{3, 3, 3, 3, 3, 3, 3, 3, 3}, []float64{900, 1000, 1100}
	c[Traceflake] = w
	if got := c.StartedAtWork(); got != 1000 {
		t.Errorf("%g goroutines a second, want 1000", got)
	}
	if got := c.BeyondDefault().Mid; got != 3 {
		t.Errorf("%g ms beyond the default, want 3", got)
	}
	c[Used] = Watched{Goroutines: 4}
	if got := c.StartedIdle(); got != 1 {
		t.Errorf("%g goroutines, want the running one", got)
	}
}

// The counters report what this process did.
func TestCounters(t *testing.T) {
	before := now()
	done := make(chan struct{})
	for range 10 {
		time.AfterFunc(time.Millisecond, func() { done <- struct{}{} })
	}
	for range 10 {
		<-done
	}
	if after := now(); after.started-before.started < 10 || after.wakes < before.wakes || after.cpu < before.cpu {
		t.Errorf("10 timers: from %+v to %+v", before, after)
	}
	if !math.IsNaN(beyond(nil, nil).Mid) {
		t.Error("a figure without a measurement")
	}
}

func TestErrorsOfAChild(t *testing.T) {
	for _, c := range []struct {
		job  string
		args []string
		want string
	}{
		{"no such job", nil, `no job "no such job"`},
		{"fails", nil, "timeout"},
		{jobName, []string{"no such case", "1s"}, `got ["no such case" "1s"]`},
		{jobName, []string{Unused, "soon"}, `invalid duration "soon"`},
	} {
		var w Watched
		if err := child.Ask(t.Context(), &w, c.job, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.job, err)
		}
	}
}
