package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

const timeHelp = `A time is RFC 3339 (2026-01-02T03:04:05Z), also with a space for the T and without
seconds, a date, "today", "yesterday", what date and HTTP headers print, Unix time in
seconds, milli-, micro- or nanoseconds, "now", or an offset such as now-90m, now-7d,
+24h or "90m ago". A time without a zone is UTC.`

// layouts are the forms of a point in time. Each also accepts a fraction of a second.
var layouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05Z0700",
	"2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02T15:04:05 Z0700",
	"2006-01-02T15:04:05 Z0700 MST",
	"2006-01-02T15:04:05 UTC", time.DateOnly, "2006/01/02", "2006/01/02T15:04:05",
	time.RFC1123, time.RFC1123Z, time.UnixDate, "Mon Jan _2 03:04:05 PM MST 2006", time.ANSIC,
	time.RubyDate,
}

// parseTime parses a time in the forms of timeHelp.
func parseTime(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	if t, ok := relative(s, now); ok {
		return t, nil
	}
	if t, ok := unix(s); ok {
		return t, nil
	}
	if t, ok := absolute(s); ok {
		return t, nil
	}
	return time.Time{}, fmt.Errorf(`%.60q is not a time: want RFC 3339, a Unix time, "now" `+
		"or an offset such as now-90m or now-7d", s)
}

// relative returns a time that depends on now.
func relative(s string, now time.Time) (t time.Time, ok bool) {
	if ago, ok := strings.CutSuffix(s, " ago"); ok {
		s = "now-" + strings.ReplaceAll(ago, " ", "")
	}
	midnight := now.UTC().Truncate(24 * time.Hour)
	switch s {
	case "now":
		return now, true
	case "today":
		return midnight, true
	case "yesterday":
		return midnight.AddDate(0, 0, -1), true
	}
	s = strings.TrimPrefix(s, "now")
	offset, later := strings.CutPrefix(s, "+")
	if !later && !strings.HasPrefix(s, "-") {
		return t, false
	}
	d, err := model.ParseDurationAllowNegative(offset)
	return now.Add(time.Duration(d)), err == nil
}

// unix returns the time in a number: seconds below 10^11, milliseconds below 10^14, microseconds
// below 10^17 and otherwise nanoseconds. So every time from 1973 on is unambiguous. A positive
// number below 10^8 is refused: it is rather a year, or a date such as 20260314. A number with a
// fraction counts seconds.
func unix(s string) (time.Time, bool) {
	if strings.Contains(s, ".") && strings.Trim(s, ".0123456789") == "" {
		d, err := time.ParseDuration(s + "s")
		return time.Unix(0, 0).Add(d), err == nil
	}
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

// absolute returns a time in one of the layouts.
func absolute(s string) (t time.Time, ok bool) {
	for _, layout := range layouts {
		text := s
		if strings.Contains(layout, "T15") {
			text = strings.Replace(s, " ", "T", 1)
		}
		t, err := time.Parse(layout, text)
		name, offset := t.Zone()
		if err == nil && (offset != 0 || slices.Contains([]string{"", "UTC", "GMT"}, name)) {
			return t, true // the offset of other zone names is unknown
		}
	}
	return t, false
}
