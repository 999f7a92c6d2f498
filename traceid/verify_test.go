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

func TestVerifier(t *testing.T) {
	keyring := newKeyring(t, fleetSecret, lastSecret)
	old := newKeyring(t, lastSecret)
	second := noon.Truncate(time.Second)
	ours := assemble(t, keyring, noon, second)
	foreign := assemble(t, newKeyring(t, anotherSecret), noon, noon)
	const ms, hour = time.Millisecond, time.Hour
	type options = []traceid.VerifierOption
	recent := traceid.WithPlausible(5 * time.Minute)
	const verified, plausible = "verified", "plausible"
	for _, tt := range []struct {
		name string
		id   trace.TraceID
		now  time.Time
		opts options
		want string
	}{
		{"generated now", ours, noon, nil, verified},
		{"under the last secret", assemble(t, old, noon, second), noon, nil, verified},
		{"a day old", ours, noon.Add(24 * hour), nil, verified},
		{"older", ours, noon.Add(24*hour + ms), nil, ""},
		{"older, allowed", ours, noon.Add(72 * hour), options{traceid.WithMaxAge(73 * hour)},
			verified},
		{"a negative age", ours, noon.Add(ms), options{traceid.WithMaxAge(-hour)}, ""},
		{"a minute ahead", ours, noon.Add(-time.Minute), nil, verified},
		{"further ahead", ours, noon.Add(-time.Minute - ms), nil, ""},
		{"further ahead, allowed", ours, noon.Add(-hour), options{traceid.WithSkew(hour)},
			verified},
		{"foreign", foreign, noon, nil, ""},
		{"foreign, ahead", foreign, noon.Add(-time.Second), nil, ""},
		{"ours, and recent", ours, noon, options{recent}, verified + plausible},
		{"foreign, but recent", foreign, noon, options{recent}, plausible},
		{"just young enough", foreign, noon.Add(5 * time.Minute), options{recent}, plausible},
		{"too old", foreign, noon.Add(5*time.Minute + ms), options{recent}, ""},
		{"foreign, a minute ahead", foreign, noon.Add(-time.Minute), options{recent}, plausible},
		{"foreign, further ahead", foreign, noon.Add(-time.Minute - ms), options{recent}, ""},
		{"foreign, further ahead, allowed", foreign, noon.Add(-hour),
			options{recent, traceid.WithSkew(hour)}, plausible},
		{"foreign, ahead, not allowed", foreign, noon.Add(-ms),
			options{recent, traceid.WithSkew(0)}, ""},
		{"ours, not recent", ours, noon.Add(hour), options{recent}, verified},
		{"ours, recent, but older than a maximum", ours, noon.Add(ms),
			options{recent, traceid.WithMaxAge(0)}, plausible},
		{"no age", foreign, noon, options{traceid.WithPlausible(-1)}, plausible},
		{"no age, a millisecond old", foreign, noon.Add(ms), options{traceid.WithPlausible(-1)},
			""},
		{"64 bits, at the epoch", trace.TraceID{8: 1}, epoch, options{recent}, ""},
		{"zero, at the epoch", trace.TraceID{}, epoch, options{recent}, ""},
		{"the epoch itself", trace.TraceID{7: 1, 8: 1}, epoch, options{recent}, plausible},
		{"UUIDv7 at noon", parse(t, "019cec37b7f47000a000000000000000"), noon, options{recent}, ""},
	} {
		v := traceid.NewVerifier(keyring, append(tt.opts, traceid.WithClock(fixed(tt.now)))...)
		got := ""
		if v.Verify(tt.id) {
			got += verified
		}
		if v.Plausible(tt.id) {
			got += plausible
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
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
