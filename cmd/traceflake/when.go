package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
)

const timeHelp = `Times are RFC 3339 (2026-01-02T03:04:05Z), a date, Unix seconds, milli-, micro-
or nanoseconds, "now", or an offset from now as in now-90m, now-7d or +24h.`

// parseTime parses a time in the forms of timeHelp.
func parseTime(s string, now time.Time) (time.Time, error) {
	distance, fromNow := strings.CutPrefix(s, "now")
	if fromNow && distance == "" {
		return now, nil
	}
	if distance != "" && (distance[0] == '+' || distance[0] == '-') {
		if d, err := parseDuration(distance); err == nil && d != 0 {
			return now.Add(d), nil
		}
	}
	if fromNow {
		return time.Time{}, fmt.Errorf("%q is not an offset from now such as now-90m or now-7d; the units are ms, s, m, h and d", s)
	}
	t, err := new(stamp.Reader).Read(s)
	if errors.Is(err, stamp.ErrForm) {
		return t, fmt.Errorf(`%q is not a time: want "now", an offset such as now-90m or now-7d, a date, RFC 3339 (2026-01-02T03:04:05Z) or a Unix time`, s)
	}
	return t, err
}

var errDuration = errors.New("want a duration such as 90s, 10m, 1h30m or 30d; the units are ms, s, m, h and d")

// parseDuration is [time.ParseDuration] with days: 30d, -1d12h.
func parseDuration(s string) (time.Duration, error) {
	unsigned := strings.TrimLeft(s, "+-")
	days, rest, ok := strings.Cut(unsigned, "d")
	if !ok {
		days, rest = "0", unsigned
	}
	const day, most = 24 * time.Hour, math.MaxInt64 / int64(24*time.Hour) / 2
	n, err := strconv.ParseInt(days, 10, 64)
	d := time.Duration(0)
	if rest != "" || !ok {
		var restErr error
		d, restErr = time.ParseDuration(rest)
		err = errors.Join(err, restErr)
	}
	if err != nil || n > most || d > day*time.Duration(most) || len(s)-len(unsigned) > 1 || strings.HasPrefix(rest, "-") {
		return 0, fmt.Errorf("%q: %w", s, errDuration)
	}
	d += time.Duration(n) * day
	if strings.HasPrefix(s, "-") {
		d = -d
	}
	return d, nil
}
