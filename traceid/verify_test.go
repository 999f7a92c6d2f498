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
	for _, tt := range []struct {
		name  string
		id    trace.TraceID
		now   time.Time
		opts  []traceid.VerifierOption
		wants bool
	}{
		{"made now", assemble(t, keyring, noon, second), noon, nil, true},
		{"made under the last secret", assemble(t, old, noon, second), noon, nil, true},
		{"low half borrowed", assemble(t, keyring, second, second.Add(2*time.Second)), noon, nil, true},
		{"low half borrowed too far", assemble(t, keyring, second, second.Add(3*time.Second)), noon, nil, false},
		{"clear half held", assemble(t, keyring, second.Add(2999*time.Millisecond), second), noon, nil, true},
		{"clear half held too far", assemble(t, keyring, second.Add(3*time.Second), second), noon, nil, false},
		{"held, with a larger tolerance", assemble(t, keyring, second.Add(3*time.Second), second), noon,
			[]traceid.VerifierOption{traceid.WithTolerance(3 * time.Second)}, true},
		{"a day old", assemble(t, keyring, noon, second), noon.Add(24 * time.Hour), nil, true},
		{"older", assemble(t, keyring, noon, second), noon.Add(24*time.Hour + time.Millisecond), nil, false},
		{"older, allowed", assemble(t, keyring, noon, second), noon.Add(72 * time.Hour),
			[]traceid.VerifierOption{traceid.WithMaxAge(73 * time.Hour)}, true},
		{"a minute ahead", assemble(t, keyring, noon, second), noon.Add(-time.Minute), nil, true},
		{"further ahead", assemble(t, keyring, noon, second), noon.Add(-time.Minute - time.Millisecond), nil, false},
		{"further ahead, allowed", assemble(t, keyring, noon, second), noon.Add(-time.Hour),
			[]traceid.VerifierOption{traceid.WithSkew(time.Hour)}, true},
		{"64 bits", trace.TraceID{8: 1}, noon, nil, false},
		{"zero", trace.TraceID{}, noon, nil, false},
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
	for _, opts := range [][]traceid.VerifierOption{nil, {traceid.WithClock(nil)}} {
		if !traceid.NewVerifier(newKeyring(t, fleetSecret), opts...).Verify(id) {
			t.Error("the ID does not pass with the secret either")
		}
	}
}
