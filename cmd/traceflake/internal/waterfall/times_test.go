package waterfall_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/waterfall"
)

// TestFarTimes: spans of any times are drawn, even if they lie further apart than a Duration lasts.
func TestFarTimes(t *testing.T) {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	ages := []time.Time{first, time.Unix(-1, 0), time.Unix(0, 0), began, last}
	for _, start := range ages {
		for _, end := range ages {
			all := rows(span{id: 1, name: "one"}, span{id: 2, parent: 1, name: "two"},
				span{id: 3, parent: 1, name: "three"})
			for i, at := range []time.Time{start, end, began} {
				all[i].Timestamp, all[i].Duration = at, uint64(max(0, end.Sub(at)))
			}
			drawn := draw(t, waterfall.New(id, false), waterfall.Options{}, all...)
			if end.Sub(start) > time.Hour && strings.Contains(drawn, " 0s DURATION") ||
				strings.Contains(drawn, " -") {
				t.Errorf("%s to %s:\n%s", start, end, drawn)
			}
		}
	}
}
