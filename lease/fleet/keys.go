package fleet

import (
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// clocks is how far the clocks of the processes and of the one that begins a history may differ.
const clocks = time.Hour

// Keys returns the keys of a store's histories whose secrets are known, the present one first. Each
// is valid for IDs of its history's time, by clocks that differ by up to an hour. They are followed
// by the secrets that belong to none of the histories, as keys: those of another store, or a fleet,
// that `traceflake lease keys` has printed.
func Keys(secrets *randflake.Keyring, d lease.Description) *randflake.Keyring {
	all, histories, others := new(randflake.Keyring), d.Histories(), slices.Clone(secrets.Codecs())
	for i, h := range histories {
		secret, err := h.Find(secrets)
		if err != nil {
			continue
		}
		others = slices.DeleteFunc(others, func(c *randflake.Codec) bool { return c == secret })
		var until time.Time // leases of a history begin until the next one does
		for _, next := range histories {
			if i > 0 && next.Begun.After(h.Begun) && (until.IsZero() || next.Begun.Before(until)) {
				until = next.Begun
			}
		}
		if !until.IsZero() {
			until = until.Add(d.LongestTTL + clocks)
		}
		begun := h.Begun
		if now := time.Now(); begun.After(now) { // the clock of its beginner is ahead
			begun = now
		}
		if key, err := lease.HistoryCodec(secret, h.ID); err == nil {
			all = all.With(key, begun.Add(-clocks), until)
		}
	}
	for _, c := range others {
		all = all.With(c, time.Time{}, time.Time{})
	}
	return all
}
