package idgen

import (
	"errors"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/reports/reportstest"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// A clock that must be wrong yields entirely random IDs, so that they do not cluster; correcting
// the clock restores the order. Each call counts as a refusal. The change is reported once, and so
// is the return, whatever other calls succeed in between.
func TestClockOutOfRange(t *testing.T) {
	const calls = 100
	// The zero-configuration source works from Randflake's first second to its last but one.
	start, end := time.Unix(randflake.Epoch, 0), time.UnixMilli(randflake.EndOfLife*1000-1001)
	for at, corrected := range map[time.Time]time.Time{
		time.Unix(0, 0): noon, epoch.Add(-1): start, last.Add(time.Millisecond): end,
	} {
		for _, both := range []bool{true, false} { // whether the source's clock is wrong, too
			errs := reportstest.Collect(t)
			clock, fallbacks := newClock(at), int64(calls)
			source := Source(&tagged{clock: newClock(noon).Now})
			if both {
				source, fallbacks = newPrivate(clock.Now, entropy.Read), 2*calls
			}
			g := New(WithClock(clock.Now), WithSource(source))
			var ids []trace.TraceID
			for range calls {
				id, low, span := idsOf(g)
				if ids = append(ids, id); low == 0 || span == 0 || spanOf(g) == 0 {
					t.Fatalf("at %v: %s, %s", at, id, span)
				}
			}
			if got := errs(); !uniform(ids) || g.Fallbacks() != fallbacks || len(got) != 1 ||
				!both && !errors.Is(got[0], errClock) {
				t.Errorf("at %v: %d fallbacks, want %d: %v, %v", at, g.Fallbacks(), fallbacks, got,
					ids)
			}
			clock.set(corrected)
			c := newChecker(t, g)
			for range calls {
				if id := c.trace(); !traceid.Time(id).Equal(corrected) {
					t.Fatalf("corrected: the ID's time is %v", traceid.Time(id))
				}
			}
			if n := g.Fallbacks(); n != fallbacks || len(errs()) != 2 {
				t.Errorf("corrected: %d fallbacks, %v", n, errs())
			}
		}
	}
}

// A source that breaks the contract is not used; one without a second is.
func TestOddSources(t *testing.T) {
	reportstest.Collect(t)
	for more, second := range map[int]time.Time{
		-minBatch: noon, 3 - minBatch: noon, 1: noon, 0: {}, // IDs too many or too few
	} {
		numbered := &tagged{clock: newClock(noon).Now}
		g := New(WithClock(newClock(noon).Now), WithSource(sourceFunc(
			func(dst []randflake.ID) (int, time.Time, error) {
				n, _, err := numbered.Fill(dst)
				return n + more, second, err
			})))
		c := newChecker(t, g)
		c.trace()
		c.span()
		if (g.Fallbacks() > 0) != (more != 0) {
			t.Errorf("%d IDs too many: %d fallbacks", more, g.Fallbacks())
		}
	}
}

// A zero Generator generates valid random IDs, counts and reports that, and can be closed.
func TestZeroGenerator(t *testing.T) {
	errs := reportstest.Collect(t)
	var g Generator
	c := newChecker(t, &g)
	for range 10 {
		c.last = trace.TraceID{} // random IDs have no order
		c.trace()
		c.span()
		if id, err := g.NewTraceIDAt(noon); err != nil || !id.IsValid() ||
			!traceid.Time(id).Equal(noon) {
			t.Errorf("%s, %v", id, err)
		}
	}
	g.OnRestore()
	if err := g.Close(); err != nil || g.Fallbacks() != 30 || len(errs()) != 1 ||
		!errors.Is(errs()[0], errZero) {
		t.Errorf("%d fallbacks, %v, %v", g.Fallbacks(), errs(), err)
	}
}

// Close waits until all reports are handled: a program that ends would lose them.
func TestCloseWaitsForReports(t *testing.T) {
	reportstest.Collect(t)
	in2026(t, func(t *testing.T) {
		handled := 0
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {
			time.Sleep(reports.Last / 2)
			handled++
		}))
		g := New(WithSource(refusing))
		for i, report := range []func(){
			func() { spanOf(g) }, func() { g.refusals.add(errClock) }, g.OnRestore,
		} {
			report()
			if err := g.Close(); err != nil || handled != i+1 {
				t.Errorf("%d reports are handled, want %d: %v", handled, i+1, err)
			}
		}
	})
}

// However often an outage begins and ends, and on however many goroutines, the reports alternate
// between beginning and end.
func TestReportsAreInOrder(t *testing.T) {
	errs := reportstest.Collect(t)
	var o outage
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				o.set(true, errRefused)
				o.set(false, nil)
			}
		})
	}
	wg.Wait()
	got := errs()
	for i, err := range got {
		if errors.Is(err, errRefused) != (i%2 == 0) {
			t.Fatalf("report %d: %v", i, err)
		}
	}
	if len(got) < 2 || len(got)%2 != 0 {
		t.Errorf("%d reports, want pairs", len(got))
	}
}
