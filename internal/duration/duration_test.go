package duration

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1.5h": 90 * time.Minute, "1h30m": 90 * time.Minute, "0": 0,
		"1d": day, "1.5d": day + day/2, ".5d": day / 2, "1d12h": day + day/2,
		"-1d12h": -day - day/2, "2w": 14 * day, "1y1ms": 365*day + time.Millisecond,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "1", "1 d", ".d", "1D", "1dd", "1d2", "1.2.5d", "300y",
		"day"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
