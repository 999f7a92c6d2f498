package idgen

import (
	"errors"
	"strings"
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

// When a source refuses, IDs stay valid and ordered; the change is reported once in each
// direction, and the calls are counted.
func TestSourceRefuses(t *testing.T) {
	errs := reportstest.Collect(t)
	clock := newClock(noon)
	source := &switched{Source: newSource(t, clock.Now)}
	keyring := randflake.NewKeyring(newCodec(t, fleetSecret))
	g := New(WithClock(clock.Now), WithSource(source))
	verifier := traceid.NewVerifier(keyring, traceid.WithClock(clock.Now))
	c := newChecker(t, g)
	const calls = 500
	for round := range int64(3) {
		for _, source.err = range []error{nil, errRefused} {
			clock.add(time.Second) // the ready IDs end with their second
			for range calls {
				id := c.trace()
				if !traceid.Time(id).Equal(clock.time()) || source.err == nil &&
					!verifier.Verify(id) {
					t.Fatalf("round %d, %v: %+v", round, source.err, traceid.Inspect(keyring, id))
				}
				c.span()
				if _, err := g.NewTraceIDAt(noon); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, want := g.Fallbacks(), 3*calls*(round+1); got != want {
			t.Fatalf("round %d: %d fallbacks, want %d", round, got, want)
		}
	}
	got := errs()
	if len(got) != 5 { // refused three times, recovered twice
		t.Fatalf("%d reports: %v", len(got), got)
	}
	for i, err := range got {
		if refused := errors.Is(err, errRefused); refused != (i%2 == 0) ||
			!strings.Contains(err.Error(), " random") {
			t.Errorf("report %d: %v", i, err)
		}
	}
}

// A clock that must be wrong yields entirely random IDs, so that they do not cluster; correcting
// the clock restores the order. Each call counts as a refusal. The change is reported once, and so
// is the return, whatever other calls succeed in between.
func TestClockOutOfRange(t *testing.T) {
	const calls = 100
	// The zero-configuration source works from Randflake's first second to its last but one.
	start, end := time.Unix(randflake.Epoch, 0), time.UnixMilli(randflake.EndOfLife*1000-1001)
	for at, corrected := range map[time.Time]time.Time{
		time.Unix(0, 0): noon, epoch.Add(-1): start, last.Add(time.Millisecond): end,
		time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC): noon,
	} {
		clock := newClock(noon)
		for name, tt := range map[string]struct {
			source    Source
			refused   error
			fallbacks int64
		}{
			"the source's clock too": {newPrivate(clock.Now, entropy.Read), nil, 2 * calls},
			"the source works":       {&tagged{clock: newClock(corrected).Now}, errClock, calls},
		} {
			errs := reportstest.Collect(t)
			clock.set(at)
			g := New(WithClock(clock.Now), WithSource(tt.source))
			highs := map[time.Time]bool{}
			for range calls {
				id, low, span := idsOf(g)
				if !id.IsValid() || low == 0 || span == 0 || spanOf(g) == 0 {
					t.Fatalf("%s, at %v: %s, %s", name, at, id, span)
				}
				highs[traceid.Time(id)] = true
			}
			got, n := errs(), g.Fallbacks()
			if len(highs) < calls-1 || n != tt.fallbacks || len(got) != 1 ||
				tt.refused != nil && !errors.Is(got[0], tt.refused) ||
				tt.refused == nil && !errors.Is(got[0], randflake.ErrBeforeEpoch) &&
					!errors.Is(got[0], randflake.ErrEndOfLife) {
				t.Errorf("%s, at %v: %d times, %d fallbacks, want %d: %v", name, at, len(highs), n,
					tt.fallbacks, got)
			}
			clock.set(corrected)
			for c := newChecker(t, g); len(c.highs) < calls; {
				if id := c.trace(); !traceid.Time(id).Equal(corrected) {
					t.Fatalf("%s, corrected: the ID's time is %v", name, traceid.Time(id))
				}
			}
			if n := g.Fallbacks(); n != tt.fallbacks || len(errs()) != 2 {
				t.Errorf("%s, corrected: %d fallbacks, %v", name, n, errs())
			}
		}
	}
}

// answers returns a source that fills with n, and returns the second and no error.
func answers(n func(dst []randflake.ID) int, second time.Time) sourceFunc {
	return func(dst []randflake.ID) (int, time.Time, error) { return n(dst), second, nil }
}

// A source that breaks the contract is not used; one without a second is.
func TestOddSources(t *testing.T) {
	for name, tt := range map[string]struct {
		source    sourceFunc
		fallbacks bool
	}{
		"no IDs and no error": {answers(func([]randflake.ID) int { return 0 }, noon), true},
		"few":                 {answers(func([]randflake.ID) int { return 3 }, noon), true},
		"more than requested": {answers(func(dst []randflake.ID) int { return len(dst) + 1 }, noon),
			true},
		"no second": {answers(func(dst []randflake.ID) int { return len(dst) }, time.Time{}),
			false},
	} {
		reportstest.Collect(t)
		numbered := &tagged{clock: newClock(noon).Now}
		fill := func(dst []randflake.ID) (int, time.Time, error) {
			_, _, _ = numbered.Fill(dst)
			return tt.source(dst)
		}
		g := New(WithClock(newClock(noon).Now), WithSource(sourceFunc(fill)))
		for c := newChecker(t, g); len(c.highs) < 1000; c.span() {
			c.trace()
		}
		if (g.Fallbacks() > 0) != tt.fallbacks {
			t.Errorf("%s: %d fallbacks", name, g.Fallbacks())
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
	handled := false
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {
		time.Sleep(reports.Last / 2)
		handled = true
	}))
	for name, report := range map[string]func(g *Generator){
		"of the source": func(g *Generator) { spanOf(g) },
		"of the clock":  func(g *Generator) { g.refusals.add(errClock) },
		"of a restore":  func(g *Generator) { g.OnRestore() },
	} {
		in2026(t, func(t *testing.T) {
			g := New(WithSource(refusing))
			report(g)
			if err := g.Close(); err != nil || !handled {
				t.Errorf("a report %s: handled: %v, %v", name, handled, err)
			}
			handled = false
		})
	}
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
