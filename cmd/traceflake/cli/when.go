package cli

import (
	"cmp"
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
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, t.Add(24*time.Hour - 1), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t, err = unix(s)
	}
	if offset, ok := strings.CutPrefix(s, "now"); ok {
		offset = cmp.Or(offset, "+0s")
		var d time.Duration
		if d, err = duration.Parse(offset); !strings.ContainsAny(offset[:1], "+-") {
			err = errors.New("no sign")
		}
		t = now.Add(d)
	}
	if err != nil {
		return first, last, fmt.Errorf("%.60q is not a time: want RFC 3339, a date such as "+
			`2026-01-02, a Unix time, "now" or an offset such as now-90m or now-7d`, s)
	}
	return t, t, nil
}

// unix returns the time in a number: seconds below 10^11, milliseconds below 10^14, microseconds
// below 10^17 and otherwise nanoseconds. So every time from 1973 on is unambiguous. A positive
// number below 10^8 is refused: it is rather a year, or a date such as 20260314.
func unix(s string) (time.Time, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case 0 < n && n < 1e8:
		return time.Time{}, strconv.ErrRange
	case n < 1e11:
		return time.Unix(n, 0), err
	case n < 1e14:
		return time.UnixMilli(n), err
	case n < 1e17:
		return time.UnixMicro(n), err
	}
	return time.Unix(0, n), err
}
