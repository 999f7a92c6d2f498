package stamp

import (
	"strings"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	want := time.Date(2024, 3, 5, 6, 7, 8, 0, time.UTC)
	milli, nano := want.Add(123*time.Millisecond), want.Add(123456789)
	var r Reader // one for all: records of one file may write their times in different formats
	for _, c := range []struct {
		unit Unit
		text string
		want time.Time
	}{
		{Auto, "2024-03-05T06:07:08Z", want},
		{Auto, "2024-03-05T07:07:08.123+01:00", milli},
		{Auto, "2024-03-05 06:07:08.123456789", nano},
		{Auto, "2024-03-05 06:07:08,123", milli},
		{Auto, "2024-03-05T06:07:08", want},
		{Auto, "2024-03-05 06:07:08.123+00", milli},
		{Auto, "2024-03-05 06:07:08.123456789 +0000 UTC", nano},
		{Auto, "2024-03-05T06:07:08.123+0000", milli},
		{Auto, "2024-03-05", want.Truncate(24 * time.Hour)},
		{Auto, "1709618828", want},
		{Auto, "1709618828.123456789", nano},
		{Auto, "1.709618828e9", want},
		{Auto, "1709618828123", milli},
		{Auto, "1709618828123456.789", nano},
		{Auto, "1709618828123456789", nano},
		{Auto, "-1", time.Unix(-1, 0)},
		{Auto, "99999999999", time.Unix(1e11-1, 0)},
		{Auto, "100000000000", time.UnixMilli(1e11)},
		{Auto, "100000000000000", time.UnixMicro(1e14)},
		{Seconds, "1709618828", want},
		{Milliseconds, "1709618828", time.UnixMilli(1709618828)},
		{Milliseconds, "0", time.Unix(0, 0)},
		{Microseconds, "1709618828123000", milli},
		{Nanoseconds, "1", time.Unix(0, 1)},
		{RFC3339, "2024-03-05T06:07:08Z", want},
	} {
		r.Unit = c.unit
		if got, err := r.Read(c.text); err != nil || !got.Equal(c.want) {
			t.Errorf("%s %q: %v, %v, want %v", Names[c.unit], c.text, got, err, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		unit       Unit
		text, want string
	}{
		{Auto, "", "empty"},
		{Auto, "yesterday", "want RFC 3339 or a Unix time"},
		{Auto, "2024-13-05T06:07:08Z", "want RFC 3339"},
		{Auto, "12:30", "want RFC 3339"},
		{Auto, "1e999999999", "want RFC 3339"},
		{Auto, "1.2.3", "want RFC 3339"},
		{Auto, "1/3", "want RFC 3339"},
		{Auto, "0x10", "want RFC 3339"},
		{Seconds, "99999999999999999", "is the unit right?"},
		{Seconds, "2024-03-05T06:07:08Z", "the format is s"},
		{RFC3339, "1709618828", "want RFC 3339"},
		{Auto, strings.Repeat("x", 1000), "…"},
	} {
		r := Reader{Unit: c.unit}
		if got, err := r.Read(c.text); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 200 {
			t.Errorf("%s %q: %v, %v, want %q", Names[c.unit], c.text, got, err, c.want)
		}
	}
}
