package traceid_test

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// A fleet changes its secret: IDs of the old and of the new secret are decoded while both are
// accepted.
func TestInspect(t *testing.T) {
	both := newKeyring(t, fleetSecret, lastSecret)
	parts := randflake.Parts{Time: noon.Truncate(time.Second), Node: 42, Sequence: 1}
	for _, c := range []struct {
		maker   string
		accepts *randflake.Keyring
		secret  int
	}{
		{fleetSecret, both, 0}, {lastSecret, both, 1}, {anotherSecret, both, -1}, {lastSecret, nil,
			-1},
		{lastSecret, new(randflake.Keyring), -1},
	} {
		id := assemble(t, newKeyring(t, c.maker), noon, noon)
		want := traceid.Info{Time: noon, Sequence: 5, Secret: c.secret}
		if c.secret >= 0 {
			want.Parts, want.Agree = parts, true
		} else if k := c.accepts.Codec(); k != nil {
			want.Parts = k.Decode(traceid.Low(id))
		}
		if got := traceid.Inspect(c.accepts, id); got != want {
			t.Errorf("generated under %s: got  %+v\nwant %+v", c.maker, got, want)
		}
	}
}
