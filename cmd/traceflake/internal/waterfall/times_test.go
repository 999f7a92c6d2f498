package waterfall_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/waterfall"
)

// TestFarTimes: spans of any times are drawn, even if they lie further apart than a Duration lasts.
func TestFarTimes(t *testing.T) {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	ages := []time.Time{first, time.Unix(-1, 0), time.Unix(0, 0), began, last}
	for _, start := range ages {
		for _, end := range ages {
			td := traces(span{1, 0, "a", "one", 0, 0, false}, span{2, 1, "a", "two", 0, 0, false},
				span{3, 1, "a", "three", 0, 0, false})
			for i, at := range []time.Time{start, end, began} {
				s := td.ResourceSpans().At(i).ScopeSpans().At(0).Spans().At(0)
				s.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
				s.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
			}
			w := waterfall.New(id, false)
			w.Add(td)
			var b strings.Builder
			if err := w.Draw(&b, waterfall.Options{}); err != nil {
				t.Fatal(err)
			}
			if end.Sub(start) > time.Hour && strings.Contains(b.String(), " 0s DURATION") ||
				strings.Contains(b.String(), " -") {
				t.Errorf("%s to %s:\n%s", start, end, &b)
			}
		}
	}
}
