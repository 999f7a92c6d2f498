package randflake

import "time"

// Clock provides the time. Now is the wall clock, which people and NTP step; Elapsed is the time
// since some fixed moment on a clock that only moves forward. Tests use a clock that they move by
// hand.
type Clock interface {
	Now() time.Time
	Elapsed() time.Duration
}

// SystemClock is the machine's clock.
var SystemClock Clock = systemClock{}

type systemClock struct{}

var processStart = time.Now()

func (systemClock) Now() time.Time         { return time.Now() }
func (systemClock) Elapsed() time.Duration { return time.Since(processStart) }
