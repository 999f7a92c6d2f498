package cli

import (
	"os"
	"strings"
	"testing"
	"time"
)

// testdata/times has a text a line, and after an arrow its time, or what is missing in it.
func TestTimes(t *testing.T) {
	now := time.Date(2024, 3, 5, 6, 7, 8, 123456789, time.UTC)
	table, err := os.ReadFile("testdata/times")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range append(lines(string(table)), strings.Repeat("x", 1000)+" → no time") {
		text, want, _ := strings.Cut(line, " → ")
		begins, ends, ok := strings.Cut(want, " to ")
		if !ok {
			ends = begins
		}
		from, wantErr := time.Parse(time.RFC3339Nano, begins)
		to, _ := time.Parse(time.RFC3339Nano, ends) // the zero time without one
		first, last, err := parseTime(text, now)
		if (err == nil) != (wantErr == nil) || !first.Equal(from) || !last.Equal(to) ||
			err != nil && len(err.Error()) > 200 {
			t.Errorf("%q: %v to %v, %v, want %s", text, first, last, err, want)
		}
	}
}
