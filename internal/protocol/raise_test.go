package protocol

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

func TestRaiseTo(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for _, tt := range []struct{ raised, until, want time.Duration }{
		{0, time.Hour, time.Hour},
		{0, time.Hour + 1, time.Hour + time.Second},
		{MaxClockAhead + 1, time.Hour, MaxClockAhead + 1}, // it lasts
		// a client that is ahead may have a later grant
		{MaxClockAhead, time.Hour, time.Hour},
		{2 * time.Hour, time.Hour, 2 * time.Hour},
		{-time.Hour, time.Hour, time.Hour},
	} {
		got := RaiseTo(now.Add(tt.raised), now.Add(tt.until), now)
		if !got.Equal(now.Add(tt.want)) {
			t.Errorf("raised to %s, and now to %s: %s, want %s", tt.raised, tt.until, got.Sub(now),
				tt.want)
		}
	}
	if got := AfterLeases(now.Add(1), time.Hour); got != now.Add(time.Hour+margin+time.Second) {
		t.Errorf("every lease is over at %s", got)
	}
	if got := AfterLeases(time.Unix(randflake.EndOfLife, 0),
		time.Hour); got.Unix() != randflake.EndOfLife {
		t.Errorf("every lease is over at %s", got)
	}
}
