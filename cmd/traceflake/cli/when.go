package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/traceflake/traceflake/internal/duration"
)

const timeHelp = `A time is RFC 3339 (2026-01-02T03:04:05Z), a date (2026-01-02, in UTC), Unix
time in seconds, milli-, micro- or nanoseconds, "now", or an offset such as now-90m or
now-7d.`

// parseTime parses a time in the forms of timeHelp, and returns its first and last moments, which
// differ for a date.
func parseTime(s string, now time.Time) (first, last time.Time, err error) {
	if s == "" { // as from a variable that is not set, which must not mean now
		return first, last, errors.New("the time is empty")
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, t.Add(24*time.Hour - 1), nil
	}
	for _, parse := range []func(string) (time.Time, bool){moment, unix} {
		if t, ok := parse(s); ok {
			return t, t, nil
		}
	}
	if offset, ok := strings.CutPrefix(s, "now"); ok {
		if d, err := offsetOf(offset); err == nil {
			return now.Add(d), now.Add(d), nil
		}
	}
	return first, last, fmt.Errorf("%.60q is not a time: want RFC 3339, a date such as "+
		`2026-01-02, a Unix time, "now" or an offset such as now-90m or now-7d`, s)
}

func moment(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, s)
	return t, err == nil
}

// offsetOf parses what follows "now": a duration with a sign, or nothing.
func offsetOf(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if s[0] != '+' && s[0] != '-' {
		return 0, errors.New("no sign")
	}
	return duration.Parse(s)
}

// unix returns the time in a number: seconds below 10^11, milliseconds below 10^14, microseconds
// below 10^17 and otherwise nanoseconds. So every time from 1973 on is unambiguous. A positive
// number below 10^8 is refused: it is rather a year, or a date such as 20260314.
func unix(s string) (time.Time, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case 0 < n && n < 1e8:
		return time.Time{}, false
	case n < 1e11:
		return time.Unix(n, 0), err == nil
	case n < 1e14:
		return time.UnixMilli(n), err == nil
	case n < 1e17:
		return time.UnixMicro(n), err == nil
	}
	return time.Unix(0, n), err == nil
}
