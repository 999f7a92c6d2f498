package idgen

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// When a source refuses, IDs stay valid and ordered; the change is reported once in each
// direction, and the calls are counted.
func TestSourceRefuses(t *testing.T) {
	errs := collectErrors(t)
	clock := newClock(noon)
	source := &switched{Source: newSource(t, clock)}
	codec := newCodec(t, fleetSecret)
	g := New(WithClock(clock), WithSource(source))
	verifier := traceid.NewVerifier(randflake.NewKeyring(codec), traceid.WithClock(clock))
	c := newChecker(t, g)
	for round := range 3 {
		clock.add(time.Second) // the ready-made IDs end with their second
		for range 500 {
			if id := c.trace(); !verifier.Verify(id) {
				t.Fatalf("round %d, healthy: %+v", round, traceid.Inspect(randflake.NewKeyring(codec), id))
			}
			c.span()
		}
		source.refuse.Store(true)
		clock.add(time.Second)
		for range 500 {
			if id := c.trace(); !traceid.Time(id).Equal(clock.time().UTC()) {
				t.Fatalf("round %d, refusing: the ID's time is %v", round, traceid.Time(id))
			}
			c.span()
			if _, err := g.NewTraceIDAt(noon); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := g.Fallbacks(), int64(1500*(round+1)); got != want {
			t.Fatalf("round %d: %d fallbacks, want %d", round, got, want)
		}
		source.refuse.Store(false)
	}
	got := errs.all()
	if len(got) != 5 { // refused three times, recovered twice
		t.Fatalf("%d reports: %v", len(got), got)
	}
	for i, err := range got {
		if refused := errors.Is(err, errRefused); refused != (i%2 == 0) || !strings.HasPrefix(err.Error(), "idgen: IDs ") {
			t.Errorf("report %d: %v", i, err)
		}
	}
}

// A clock that must be wrong yields entirely random IDs, so that they do not cluster; correcting
// the clock restores the order.
func TestClockOutOfRange(t *testing.T) {
	for _, at := range []time.Time{time.Unix(0, 0), epoch.Add(-1), last.Add(time.Millisecond), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)} {
		errs := collectErrors(t)
		clock := newClock(at)
		g := New(WithClock(clock))
		highs := map[time.Time]bool{}
		for range 100 {
			id, span := g.NewIDs(t.Context())
			if !id.IsValid() || !span.IsValid() || !g.NewSpanID(t.Context(), id).IsValid() {
				t.Fatalf("at %v: %s, %s", at, id, span)
			}
			highs[traceid.Time(id)] = true
		}
		if len(highs) < 99 {
			t.Errorf("at %v: only %d different times", at, len(highs))
		}
		if n := g.Fallbacks(); n != 200 || len(errs.all()) != 1 {
			t.Errorf("at %v: %d fallbacks, %v", at, n, errs.all())
		} else if err := errs.all()[0]; !errors.Is(err, randflake.ErrBeforeEpoch) && !errors.Is(err, randflake.ErrEndOfLife) {
			t.Errorf("at %v: %v, want the source's error", at, err)
		}
		clock.set(noon)
		c := newChecker(t, g)
		for range 100 {
			if id := c.trace(); !traceid.Time(id).Equal(noon) {
				t.Fatalf("corrected: the ID's time is %v", traceid.Time(id))
			}
		}
		if n := g.Fallbacks(); n != 200 || len(errs.all()) != 2 {
			t.Errorf("corrected: %d fallbacks, %v", n, errs.all())
		}
	}
}

// sourceFunc is a source that breaks the contract in some way.
type sourceFunc func(dst []randflake.ID) (int, time.Time, error)

func (f sourceFunc) Fill(dst []randflake.ID) (int, time.Time, error) { return f(dst) }

func TestOddSources(t *testing.T) {
	var n randflake.ID
	count := func(dst []randflake.ID, every int) {
		for i := range dst {
			if n++; i%every == 0 {
				dst[i] = 0
			} else {
				dst[i] = n
			}
		}
	}
	for _, tt := range []struct {
		name      string
		source    sourceFunc
		fallbacks bool
	}{
		{"no IDs and no error", func([]randflake.ID) (int, time.Time, error) { return 0, noon, nil }, true},
		{"one at a time", func(dst []randflake.ID) (int, time.Time, error) {
			count(dst[:1], 2)
			dst[0] = n
			return 1, noon, nil
		}, true}, // a trace needs two
		{"few, with an error", func(dst []randflake.ID) (int, time.Time, error) {
			count(dst[:3], 4)
			dst[0] = n + 1<<40
			return 3, noon, randflake.ErrExhausted
		}, false},
		{"zeros", func(dst []randflake.ID) (int, time.Time, error) { count(dst, 2); return len(dst), noon, nil }, false},
		{"only zeros", func(dst []randflake.ID) (int, time.Time, error) { clear(dst); return len(dst), noon, nil }, true},
		{"no second", func(dst []randflake.ID) (int, time.Time, error) {
			count(dst, 300)
			return len(dst), time.Time{}, nil
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			collectErrors(t)
			g := New(WithClock(newClock(noon)), WithSource(tt.source))
			c := newChecker(t, g)
			for range 1000 {
				c.trace()
				c.span()
			}
			if (g.Fallbacks() > 0) != tt.fallbacks {
				t.Errorf("%d fallbacks", g.Fallbacks())
			}
		})
	}
}

func TestNilOptions(t *testing.T) {
	c := newChecker(t, New(WithSource(nil), WithClock(nil),
		WithMeterProvider(nil)))
	c.trace()
	c.span()
}
