package protocol

import (
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// margin is added to the longest TTL where leases may have been lost or belong to another store: a
// client's clock may be ahead of its store's, and that of a store restored elsewhere behind the
// previous one's.
const margin = MaxClockAhead + 2*time.Minute

// RaiseTo returns the time to which a store is raised: until, rounded up to a whole second, or the
// time of an earlier raise if nothing can have been granted after that, not even to a client whose
// clock is ahead. now is the current time, the store's or the caller's.
func RaiseTo(raised, until, now time.Time) time.Time {
	if raised.After(now.Add(MaxClockAhead)) {
		return raised
	}
	return RoundUp(until)
}

// AfterLeases returns the time at which every lease of at most this TTL that was granted before now
// is over.
func AfterLeases(now time.Time, ttl time.Duration) time.Time {
	end := RoundUp(now.Add(ttl + margin))
	if last := time.Unix(randflake.EndOfLife, 0).UTC(); end.After(last) {
		return last
	}
	return end
}

// RoundUp rounds a time up to a whole second.
func RoundUp(t time.Time) time.Time {
	if t.Nanosecond() > 0 {
		t = t.Add(time.Second)
	}
	return time.Unix(t.Unix(), 0).UTC()
}
