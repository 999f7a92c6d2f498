package fleet

import (
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// clocks is how far the clocks of the processes and of the one that begins a history may differ.
const clocks = time.Hour

// life is a history with the time in which IDs are generated in it.
type life struct {
	lease.History
	until time.Time // zero for the present history
}

// livesOf returns the lives of a store's histories, the present one first. A lease of a history may
// begin until the next history does.
func livesOf(d lease.Description) (all []life) {
	for i, h := range d.Histories() {
		l := life{History: h}
		if i > 0 {
			l.until = all[i-1].Begun.Add(d.LongestTTL + clocks)
		}
		all = append(all, l)
	}
	return all
}

// merge adds the lives that a store has forgotten. If one of them was the present one, it ends with
// the leases.
func merge(shown, known []life, end time.Time) []life {
	for _, l := range known {
		if !slices.ContainsFunc(shown, func(s life) bool { return s.ID == l.ID }) {
			if l.until.IsZero() {
				l.until = end.Add(clocks)
			}
			shown = append(shown, l)
		}
	}
	return shown
}

// Keys returns the keys of a store's histories whose secrets are known, the present one first. Each
// is valid for IDs of its history's time, by clocks that differ by up to an hour. They are followed
// by the secrets that belong to none of the histories, as keys: those of another store, or a fleet,
// that `traceflake lease keys` has printed.
func Keys(secrets *randflake.Keyring, d lease.Description) *randflake.Keyring {
	return keys(secrets, livesOf(d))
}

func keys(secrets *randflake.Keyring, lives []life) *randflake.Keyring {
	all := new(randflake.Keyring)
	var used []*randflake.Codec
	for _, l := range lives {
		secret, err := l.Find(secrets)
		if err != nil {
			continue
		}
		used = append(used, secret)
		key, err := lease.HistoryCodec(secret, l.ID)
		if err == nil {
			all = all.With(key, l.Begun.Add(-clocks), l.until)
		}
	}
	for _, c := range secrets.Codecs() {
		if !slices.Contains(used, c) {
			all = all.With(c, time.Time{}, time.Time{})
		}
	}
	return all
}
