package traceid_test

import (
	"math"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/traceid"
)

// Far years are clamped like near ones, also where their milliseconds overflow and look valid.
func TestFarYears(t *testing.T) {
	const wrap = 18_446_744_073_709_552 // seconds: the first one after 2^64 ms
	last := time.UnixMilli(layout.EpochMillis + layout.MaxMillis)
	for far, want := range map[time.Time]time.Time{
		{}: epoch, time.Unix(math.MinInt64, 0): epoch, time.Unix(noon.Unix()-wrap, 0): epoch,
		time.Unix(math.MaxInt64, 0): last, time.Unix(1<<40, 0): last,
		time.Unix(noon.Unix()+wrap, 0): last,
	} {
		id, err := traceid.New(far, 1, 1)
		lo, hi := traceid.Min(far), traceid.Max(far)
		if err == nil || lo != traceid.Min(want) || hi != traceid.Max(want) {
			t.Errorf("the year %d: %s, %v, bounds %s, %s", far.Year(), id, err, lo, hi)
		}
	}
}
