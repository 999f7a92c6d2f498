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
		{"a day old", ours, noon.Add(24 * hour), nil, true},
		{"older", ours, noon.Add(24*hour + ms), nil, false},
		{"older, allowed", ours, noon.Add(72 * hour), options{traceid.WithMaxAge(73 * hour)}, true},
		{"a negative age", ours, noon.Add(ms), options{traceid.WithMaxAge(-hour)}, false},
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
		{"ours, older than the rule allows", ours, noon.Add(hour), options{rule}, true},
		{"no age", foreign, noon, options{ageless}, true},
		{"no age, a millisecond old", foreign, noon.Add(ms), options{ageless}, false},
		{"64 bits, at the epoch", trace.TraceID{8: 1}, epoch, options{rule}, false},
		{"zero, at the epoch", trace.TraceID{}, epoch, options{rule}, false},
		{"the epoch itself", trace.TraceID{7: 1, 8: 1}, epoch, options{rule}, true},
		{"UUIDv7 at noon", parse(t, "019cec37b7f47000a000000000000000"), noon, options{rule}, false},
	} {
		v := traceid.NewVerifier(keyring, append(tt.opts, traceid.WithClock(fixed(tt.now)))...)
		if got := v.Verify(tt.id); got != tt.wants {
			t.Errorf("%s: %v", tt.name, got)
		}
		// Inspect knows no age.
		if got := traceid.Inspect(keyring, tt.id).Agree; tt.now.Equal(noon) && tt.opts == nil && got != tt.wants {
			t.Errorf("%s: Inspect says %v", tt.name, got)
		}
	}
}

// Without secrets nothing passes, and nothing panics.
func TestVerifierWithoutSecrets(t *testing.T) {
	now := time.Now()
	id := assemble(t, newKeyring(t, fleetSecret), now, now)
	for name, v := range map[string]*traceid.Verifier{
		"zero": {}, "nil": nil, "nil keyring": traceid.NewVerifier(nil),
		"zero keyring": traceid.NewVerifier(new(randflake.Keyring)), "keyring without secrets": traceid.NewVerifier(randflake.NewKeyring(nil)),
	} {
		if v.Verify(id) {
			t.Errorf("%s: it passes", name)
		}
	}
	if !traceid.NewVerifier(nil, traceid.WithPlausible(time.Minute)).Verify(id) {
		t.Error("the second rule needs a secret")
	}
	if !traceid.NewVerifier(newKeyring(t, fleetSecret), nil, traceid.WithClock(nil)).Verify(id) {
		t.Error("the ID does not pass with the secret either")
	}
}

// A fleet changes its secret: IDs of the old and of the new secret are decoded while both are accepted.
func TestInspect(t *testing.T) {
	const older, newer, other = "the older secret", "the newer secret", "another's secret"
	both := newKeyring(t, newer, older)
	parts := randflake.Parts{Time: noon.Truncate(time.Second), Node: 42, Sequence: 1}
	for _, c := range []struct {
		maker   string
		accepts *randflake.Keyring
		secret  int
	}{
		{newer, both, 0}, {older, both, 1}, {other, both, -1}, {older, nil, -1}, {older, new(randflake.Keyring), -1},
	} {
		id := assemble(t, newKeyring(t, c.maker), noon, noon)
		want := traceid.Info{Time: noon, Sequence: 5, Secret: c.secret}
		if c.secret >= 0 {
			want.Parts, want.Agree = parts, true
		} else if k := c.accepts.Codec(); k != nil {
			want.Parts = k.Decode(traceid.Low(id))
		}
		if got := traceid.Inspect(c.accepts, id); got != want {
			t.Errorf("made with %q: got  %+v\nwant %+v", c.maker, got, want)
		}
	}
}
