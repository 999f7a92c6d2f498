package traceid_test

import (
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

func parse(t testing.TB, s string) trace.TraceID {
	t.Helper()
	id, err := trace.TraceIDFromHex(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return id
}

var (
	epoch = time.UnixMilli(traceid.EpochMillis).UTC()
	last  = time.UnixMilli(traceid.EpochMillis + traceid.MaxMillis).UTC()
)

// Far years are clamped like near ones, also where their milliseconds overflow and look valid.
func TestFarYears(t *testing.T) {
	const wrap = 18_446_744_073_709_552 // seconds: the first one after 2^64 ms
	for want, far := range map[time.Time][]time.Time{
		epoch: {{}, time.Unix(math.MinInt64, 0), time.Unix(noon.Unix()-wrap, 0)},
		last:  {time.Unix(math.MaxInt64, 0), time.Unix(1<<40, 0), time.Unix(noon.Unix()+wrap, 0)},
	} {
		for _, at := range far {
			if ms, err := traceid.Millis(at); err == nil {
				t.Errorf("year %d is millisecond %d", at.Year(), ms)
			}
			if lo, hi := traceid.Min(at), traceid.Max(at); lo != traceid.Min(want) || hi != traceid.Max(want) {
				t.Errorf("bounds of the year %d: %s, %s, want those of %s", at.Year(), lo, hi, want)
			}
		}
	}
}
