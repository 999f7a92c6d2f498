package stamp

import (
	"strings"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	want := time.Date(2024, 3, 5, 6, 7, 8, 0, time.UTC)
	milli, nano := want.Add(123*time.Millisecond), want.Add(123456789)
	for text, want := range map[string]time.Time{
		"2024-03-05T06:07:08Z":                    want,
		"2024-03-05T07:07:08.123+01:00":           milli,
		"2024-03-05 06:07:08.123456789":           nano,
		"2024-03-05 06:07:08,123":                 milli,
		"2024-03-05T06:07:08":                     want,
		"2024-03-05 06:07:08.123Z":                milli,
		"2024-03-05 06:07:08.123+00":              milli,
		"2024-03-05 07:07:08.123 +01:00":          milli,
		"2024-03-05 06:07:08.123456789 +0000 UTC": nano,
		"2024-03-05T06:07:08.123+0000":            milli,
		"2024-03-05":                              want.Truncate(24 * time.Hour),
		"1709618828":                              want,
		"1709618828.123456789":                    nano,
		"1.709618828e9":                           want,
		"1.709618828123E+12":                      milli,
		"1709618828123":                           milli,
		"1709618828123456.789":                    nano,
		"1709618828123456789":                     nano,
		"-1":                                      time.Unix(-1, 0),
		"9223372036":                              time.Unix(9223372036, 0),
		"100000000000":                            time.UnixMilli(1e11),
		"9223372036854":                           time.UnixMilli(9223372036854),
		"100000000000000":                         time.UnixMicro(1e14),
		"9223372036854775":                        time.UnixMicro(9223372036854775),
		"100000000000000000":                      time.Unix(1e8, 0),
		"-1.5":                                    time.UnixMilli(-1500),
		"9999999999.25":                           time.UnixMilli(9999999999250), // after 2262
		"99999999999":                             time.Unix(99999999999, 0),
		"99999999999999":                          time.UnixMilli(99999999999999),
		"99999999999999999":                       time.UnixMicro(99999999999999999),
	} {
		if got, err := Read(text); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "2024-13-05T06:07:08Z", "12:30", "1e999999999", "1e300", "1.2.3", "1.-2", "+-1", "1/3", "0x10",
		"1m2", "NaN", "99999999999999999999", strings.Repeat("x", 1000)} {
		if got, err := Read(text); err == nil || len(err.Error()) > 200 {
			t.Errorf("%q: %v, %v, want a short error", text, got, err)
		}
	}
}
