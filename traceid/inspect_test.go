package traceid_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

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
