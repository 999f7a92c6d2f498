package cli

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "30d": 30 * day, "1d12h": 36 * time.Hour, "-7d": -7 * day, "+1d1ns": day + 1,
		"0": 0, "0d": 0, "-1d12h": -36 * time.Hour, "50000d": 50000 * day,
	} {
		if d, err := parseDuration(s); err != nil || d != want {
			t.Errorf("%s: %s, %v; want %s", s, d, err, want)
		}
	}
	for _, s := range []string{"", "d", "7", "7x", "1.5d", "--1d", "1d-1h", "1h1d", "999999999d", "99999999999999999999d", "1d2d", "NaNd"} {
		if d, err := parseDuration(s); err == nil {
			t.Errorf("%q: %s, want an error", s, d)
		}
	}
}
