package traceid_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

func TestVerifier(t *testing.T) {
	keyring := newKeyring(t, fleetSecret, "the last secret!")
	old := newKeyring(t, "the last secret!")
	second := noon.Truncate(time.Second)
	ours := assemble(t, keyring, noon, second)
	foreign := assemble(t, newKeyring(t, "another secret!!"), noon, noon)
	const ms, hour = time.Millisecond, time.Hour
	type options = []traceid.VerifierOption
	rule, ageless := traceid.WithPlausible(5*time.Minute), traceid.WithPlausible(-1)
	for _, tt := range []struct {
		name  string
		id    trace.TraceID
		now   time.Time
		opts  options
		wants bool
	}{
		{"made now", ours, noon, nil, true},
		{"made under the last secret", assemble(t, old, noon, second), noon, nil, true},
		{"low half borrowed", assemble(t, keyring, second, second.Add(2*time.Second)), noon, nil, true},
		{"low half borrowed too far", assemble(t, keyring, second, second.Add(3*time.Second)), noon, nil, false},
		{"clear half held", assemble(t, keyring, second.Add(2999*time.Millisecond), second), noon, nil, true},
		{"clear half held too far", assemble(t, keyring, second.Add(3*time.Second), second), noon, nil, false},
		{"held, with a larger tolerance", assemble(t, keyring, second.Add(3*time.Second), second), noon,
			options{traceid.WithTolerance(3 * time.Second)}, true},
		{"a day old", ours, noon.Add(24 * hour), nil, true},
		{"older", ours, noon.Add(24*hour + ms), nil, false},
		{"older, allowed", ours, noon.Add(72 * hour), options{traceid.WithMaxAge(73 * hour)}, true},
		{"a minute ahead", ours, noon.Add(-time.Minute), nil, true},
		{"further ahead", ours, noon.Add(-time.Minute - ms), nil, false},
		{"further ahead, allowed", ours, noon.Add(-hour), options{traceid.WithSkew(hour)}, true},
		// The second rule.
		{"foreign", foreign, noon, nil, false},
		{"plausible", foreign, noon, options{rule}, true},
		{"just young enough", foreign, noon.Add(5 * time.Minute), options{rule}, true},
		{"too old", foreign, noon.Add(5*time.Minute + ms), options{rule}, false},
		{"plausible, a minute ahead", foreign, noon.Add(-time.Minute), options{rule}, true},
		{"plausible, further ahead", foreign, noon.Add(-time.Minute - ms), options{rule}, false},
		{"plausible, further ahead, allowed", foreign, noon.Add(-hour), options{rule, traceid.WithSkew(hour)}, true},
		{"ours, older than the rule allows", ours, noon.Add(hour), options{rule}, true},
		{"ours, too old for us, but not for the rule", ours, noon.Add(hour),
			options{traceid.WithMaxAge(time.Minute), traceid.WithPlausible(2 * hour)}, true},
		{"no age", foreign, noon, options{ageless}, true},
		{"no age, a millisecond old", foreign, noon.Add(ms), options{ageless}, false},
		{"64 bits", trace.TraceID{8: 1}, noon, nil, false},
		{"zero", trace.TraceID{}, noon, nil, false},
		{"64 bits, at the epoch", trace.TraceID{8: 1}, epoch, options{rule}, false},
		{"zero, at the epoch", trace.TraceID{}, epoch, options{rule}, false},
		{"the epoch itself", trace.TraceID{7: 1, 8: 1}, epoch, options{rule}, true},
		{"UUIDv7 at noon", parse(t, "019cec37b7f47000a000000000000000"), noon, options{rule}, false},
	} {
		v := traceid.NewVerifier(keyring, append(tt.opts, traceid.WithClock(fixed(tt.now)))...)
		if got := v.Verify(tt.id); got != tt.wants {
			t.Errorf("%s: %v", tt.name, got)
		}
		// Inspect knows no age and has the default tolerance.
		if got := traceid.Inspect(keyring, tt.id).Agree; tt.now.Equal(noon) && tt.opts == nil && got != tt.wants {
			t.Errorf("%s: Inspect says %v", tt.name, got)
		}
	}
}

// Without secrets nothing passes, and nothing panics.
func TestVerifierWithoutSecrets(t *testing.T) {
	now := time.Now()
	id := assemble(t, newKeyring(t, fleetSecret), now, now)
	var none *traceid.Verifier
	for name, v := range map[string]*traceid.Verifier{
		"zero":                    {},
		"nil":                     none,
		"nil keyring":             traceid.NewVerifier(nil),
		"zero keyring":            traceid.NewVerifier(new(randflake.Keyring)),
		"keyring without secrets": traceid.NewVerifier(randflake.NewKeyring(nil)),
	} {
		for _, id := range []trace.TraceID{id, traceid.Min(now), {}} {
			if v.Verify(id) {
				t.Errorf("%s: %s passes", name, id)
			}
		}
	}
	if !traceid.NewVerifier(nil, traceid.WithPlausible(time.Minute)).Verify(id) {
		t.Error("the second rule needs a secret")
	}
	for _, opts := range [][]traceid.VerifierOption{nil, {nil, traceid.WithClock(nil)}} {
		if !traceid.NewVerifier(newKeyring(t, fleetSecret), opts...).Verify(id) {
			t.Error("the ID does not pass with the secret either")
		}
	}
}

// A fleet changes its secret: IDs of the old and of the new secret pass while both are accepted.
func TestInspect(t *testing.T) {
	const older, newer, other = "the older secret", "the newer secret", "another's secret"
	parts := randflake.Parts{Time: noon.Truncate(time.Second), Node: 42, Sequence: 1}
	for _, c := range []struct {
		name    string
		maker   *randflake.Keyring
		accepts *randflake.Keyring
		secret  int
	}{
		{"before the change", newKeyring(t, older, newer), newKeyring(t, older), 0},
		{"new secret accepted", newKeyring(t, newer, older), newKeyring(t, older, newer), 1},
		{"old secret accepted", newKeyring(t, older, newer), newKeyring(t, newer, older), 1},
		{"new secret makes", newKeyring(t, newer, older), newKeyring(t, newer, older), 0},
		{"one codec", newKeyring(t, older), randflake.NewKeyring(newKeyring(t, older).Codec()), 0},
		{"old secret gone", newKeyring(t, older), newKeyring(t, newer), -1},
		{"another fleet's", newKeyring(t, other), newKeyring(t, newer, older), -1},
		{"no secret", newKeyring(t, older), nil, -1},
		{"zero keyring", newKeyring(t, older), new(randflake.Keyring), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := assemble(t, c.maker, noon, noon)
			got := traceid.Inspect(c.accepts, id)
			want := traceid.Info{TraceID: id, Time: noon, Sequence: 5, Low: traceid.Low(id), Secret: c.secret}
			if c.secret >= 0 {
				want.Parts, want.Agree = parts, true
			} else if k := c.accepts.Codec(); k != nil {
				want.Parts = k.Decode(want.Low)
			}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if verifies := traceid.NewVerifier(c.accepts, traceid.WithClock(fixed(noon))).Verify(id); verifies != want.Agree {
				t.Errorf("verifies: %v, want %v", verifies, want.Agree)
			}
		})
	}
	if zero := traceid.Inspect(newKeyring(t, older), trace.TraceID{}); zero.Agree || zero.Secret != -1 {
		t.Errorf("of the invalid ID: %+v", zero)
	}
}
