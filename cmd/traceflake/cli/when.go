package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/traceflake/traceflake/cmd/traceflake/internal/stamp"
)

const timeHelp = `A time is RFC 3339 (2026-01-02T03:04:05Z), a date, Unix time in seconds, milli-,
micro- or nanoseconds, "now", or an offset such as now-90m, now-7d or +24h.`

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

var days = regexp.MustCompile(`^([+-]?)(?:(\d{1,5})d)?([\d.].*)?$`)

// parseDuration is [time.ParseDuration] with days: 30d, -1d12h.
func parseDuration(s string) (time.Duration, error) {
	const day, most = 24 * time.Hour, 100 * 365 * 24 * time.Hour
	parts := days.FindStringSubmatch(s)
	if parts == nil || parts[2]+parts[3] == "" {
		return 0, fmt.Errorf("%q: %w", s, errDuration)
	}
	n, _ := strconv.Atoi(cmp.Or(parts[2], "0")) // the digits that the expression allows
	rest, err := time.ParseDuration(cmp.Or(parts[3], "0"))
	if err != nil || rest > most {
		return 0, fmt.Errorf("%q: %w", s, errDuration)
	}
	d := time.Duration(n)*day + rest
	if parts[1] == "-" {
		d = -d
	}
	return d, nil
}

var errDuration = errors.New("want a duration such as 90s, 10m, 1h30m or 30d; the units are ms, s, m, h and d")

// shortly is a duration as parseDuration reads it, without zero units: 30d, 1h30m.
func shortly(d time.Duration) string {
	const day = 24 * time.Hour
	if d > day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if left, ok := strings.CutSuffix(text, zero); ok && strings.ContainsAny(left[max(0, len(left)-1):], "hm") {
			text = left
		}
	}
	return text
}
