package traceid_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// noon is a time at which everything works; epoch is the first that an ID encodes.
var (
	noon  = time.Date(2026, 3, 14, 12, 0, 0, 500_000_000, time.UTC)
	epoch = time.UnixMilli(layout.EpochMillis).UTC()
)

// fixed returns a clock that does not move.
func fixed(t time.Time) func() time.Time { return func() time.Time { return t } }

// Secrets, in hexadecimal digits.
const (
	fleetSecret   = "74686520666c65657420736563726574"
	lastSecret    = "746865206c6173742073656372657421"
	anotherSecret = "616e6f74686572207365637265742121"
)

func newKeyring(t testing.TB, secrets ...string) *randflake.Keyring {
	t.Helper()
	k, err := randflake.ParseKeyring(strings.Join(secrets, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// assemble returns an ID under k's first secret whose halves have these times.
func assemble(t testing.TB, k *randflake.Keyring, clear, second time.Time) trace.TraceID {
	t.Helper()
	low, err := k.Codec().Encode(randflake.Parts{Time: second, Node: 42, Sequence: 1})
	if err != nil {
		t.Fatal(err)
	}
	id, err := traceid.New(clear, 5, low)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func parse(t testing.TB, s string) trace.TraceID {
	t.Helper()
	id, err := trace.TraceIDFromHex(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return id
}

// How old an ID may be, and how far ahead: of an ID under the first secret, under the last one, and
// under another, which is plausible at most.
func TestVerifier(t *testing.T) {
	keyring := newKeyring(t, fleetSecret, lastSecret)
	const ms, minute, hour, day = time.Millisecond, time.Minute, time.Hour, 24 * time.Hour
	recent := traceid.WithPlausible(5 * minute)
	type options = []traceid.VerifierOption
	const verified, plausible = "verified", "plausible"
	for _, c := range []struct {
		opts options
		ages map[time.Duration]string
	}{
		{nil, map[time.Duration]string{-minute - ms: "", -minute: verified, 0: verified,
			day: verified, day + ms: ""}},
		{options{recent}, map[time.Duration]string{-minute - ms: "", -minute: verified + plausible,
			5 * minute: verified + plausible, 5*minute + ms: verified, day + ms: ""}},
		{options{traceid.WithMaxAge(73 * hour)}, map[time.Duration]string{72 * hour: verified}},
		{options{traceid.WithMaxAge(-hour)}, map[time.Duration]string{0: verified, ms: ""}},
		{options{recent, traceid.WithMaxAge(0)}, map[time.Duration]string{ms: plausible}},
		{options{recent, traceid.WithSkew(hour)},
			map[time.Duration]string{-hour: verified + plausible}},
		{options{recent, traceid.WithSkew(-hour)},
			map[time.Duration]string{0: verified + plausible, -ms: ""}},
		{options{traceid.WithPlausible(-1)},
			map[time.Duration]string{0: verified + plausible, ms: verified}},
	} {
		for age, want := range c.ages {
			v := traceid.NewVerifier(keyring,
				append(c.opts, traceid.WithClock(fixed(noon.Add(age))))...)
			for _, secret := range []string{fleetSecret, lastSecret, anotherSecret} {
				id, got := assemble(t, newKeyring(t, secret), noon, noon), ""
				if secret == anotherSecret {
					want = strings.TrimPrefix(want, verified)
				}
				if v.Verify(id) {
					got += verified
				}
				if v.Plausible(id) {
					got += plausible
				}
				if got != want {
					t.Errorf("%v old, secret %s: %q, want %q", age, secret, got, want)
				}
			}
		}
	}
}

// Without secrets nothing passes, and nothing panics.
func TestVerifierWithoutSecrets(t *testing.T) {
	now := time.Now()
	id := assemble(t, newKeyring(t, fleetSecret), now, now)
	for name, v := range map[string]*traceid.Verifier{
		"zero": {}, "nil": nil, "nil keyring": traceid.NewVerifier(nil),
		"zero keyring": traceid.NewVerifier(new(randflake.Keyring)),
	} {
		if v.Verify(id) || v.Plausible(id) {
			t.Errorf("%s: it passes", name)
		}
	}
	if !traceid.NewVerifier(nil, traceid.WithPlausible(time.Minute)).Plausible(id) ||
		!traceid.NewVerifier(newKeyring(t, fleetSecret), nil, traceid.WithClock(nil)).Verify(id) {
		t.Error("a recent ID needs a secret, or the ID does not pass with the secret either")
	}
}

// A secret counts for IDs of its life only, whose clear half says when they were generated. An ID
// that may be under a secret that is not known yet is reported, and verified once it is.
func TestVerifierOfHistories(t *testing.T) {
	all := newKeyring(t, fleetSecret, lastSecret).Codecs()
	last := randflake.NewKeyring(all[1])
	early := assemble(t, last, noon.Add(-time.Minute), noon.Add(-time.Minute))
	late := assemble(t, last, noon, noon)
	keyring := randflake.NewKeyring(all[0])
	var unknown []trace.TraceID
	v := traceid.NewVerifierFunc(func() *randflake.Keyring { return keyring },
		traceid.WithClock(fixed(noon)),
		traceid.WithUnknown(func(id trace.TraceID) { unknown = append(unknown, id) }))
	if v.Verify(late) || v.Verify(trace.TraceID{7: 1, 8: 1}) || !slices.Equal(unknown,
		[]trace.TraceID{late}) {
		t.Errorf("unknown are %v, want %v", unknown, late)
	}
	keyring = keyring.With(all[1], noon, noon.Add(time.Hour))
	if !v.Verify(late) || v.Verify(early) || len(unknown) != 2 {
		t.Errorf("unknown are %v, want also %v", unknown, early)
	}
	if info := traceid.Inspect(keyring, early); info.Agree || info.Parts.Time.IsZero() {
		t.Errorf("of another time: %+v", info)
	}
	if n := testing.AllocsPerRun(100, func() { v.Verify(late) }); n != 0 {
		t.Errorf("Verify allocates %v times", n)
	}
}
