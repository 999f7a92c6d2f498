package randflake

import "time"

// Clock provides wall-clock time, which operators and NTP may step.
type Clock interface{ Now() time.Time }

// ClockFunc is a [Clock] that calls a function, such as time.Now or a test's. A nil one is the
// machine's clock.
type ClockFunc func() time.Time

// Now calls f.
func (f ClockFunc) Now() time.Time {
	if f == nil {
		return time.Now()
	}
	return f()
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now returns time.Now().
func (SystemClock) Now() time.Time { return time.Now() }
