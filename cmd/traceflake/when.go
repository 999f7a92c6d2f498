package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
)

const timeHelp = `Times are RFC 3339 (2026-01-02T03:04:05Z), a date, Unix seconds, milli-, micro-
or nanoseconds, "now", or an offset from now as in now-90m or +24h.`

// parseTime parses a time in the forms of timeHelp.
func parseTime(s string, now time.Time) (time.Time, error) {
	distance, fromNow := strings.CutPrefix(s, "now")
	if fromNow && distance == "" {
		return now, nil
	}
	if d, err := time.ParseDuration(distance); err == nil && (distance[0] == '+' || distance[0] == '-') && d != 0 {
		return now.Add(d), nil
	}
	if fromNow {
		return time.Time{}, fmt.Errorf("%q is not an offset from now such as now-90m", s)
	}
	return new(stamp.Reader).Read(s)
}
