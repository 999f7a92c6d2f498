package lease

import (
	"testing"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// What a stored block means after two renewals were proposed, of which neither was acknowledged.
func TestMeaning(t *testing.T) {
	const s = time.Second
	start := time.Unix(1_800_000_000, 0)
	mine := &term{
		grant: Grant{Lease: randflake.Lease{Start: start, End: start.Add(10 * s)}, Nonce: "mine",
			Version: 3, Acquired: "acquired"},
		pending: []string{"first", "second"},
	}
	for name, tt := range map[string]struct {
		nonce        string
		version      uint64
		start, end   time.Duration // later than in the grant
		other        bool          // another Acquire granted it
		acknowledged bool
		want         answer
	}{
		"acknowledged":                    {"second", 4, 0, 5 * s, false, true, written},
		"acknowledged, and the end stays": {"second", 4, 0, 0, false, true, written},
		"acknowledged, an earlier end":    {"second", 4, 0, -s, false, true, forgotten},
		"acknowledged, an older version":  {"second", 2, 0, 5 * s, false, true, forgotten},
		"acknowledged, another grant":     {"second", 4, 0, 5 * s, true, true, forgotten},
		"not written":                     {"mine", 3, 0, 0, false, false, unwritten},
		"an older version":                {"mine", 2, 0, 0, false, false, forgotten},
		"an earlier end":                  {"second", 4, 0, -s, false, false, forgotten},
		"my nonce, a newer version":       {"mine", 4, 0, 5 * s, false, false, forgotten},
		"my nonce, a later start":         {"mine", 3, 40 * s, 40 * s, false, false, forgotten},
		"my nonce, from my end on":        {"mine", 4, 10 * s, 10 * s, false, false, lost},
		"my nonce, from before my end on": {"mine", 4, 9 * s, 10 * s, false, false, forgotten},
		"the last nonce":                  {"second", 4, 0, 5 * s, false, false, late},
		"an earlier nonce":                {"first", 4, 0, 5 * s, false, false, late},
		"an earlier nonce, written over":  {"first", 5, 0, 5 * s, false, false, copied},
		"an earlier nonce, another grant": {"first", 4, 0, 5 * s, true, false, forgotten},
		"another's nonce":                 {"another's", 4, 0, 5 * s, false, false, copied},
		"another's nonce, my version":     {"another's", 3, 0, 0, false, false, forgotten},
		"another grant, from my end on":   {"another's", 4, 10 * s, 10 * s, true, false, lost},
		"another grant, before my end":    {"another's", 5, 9 * s, 40 * s, true, false, forgotten},
		"another grant, as old":           {"another's", 3, 40 * s, 40 * s, true, false, forgotten},
	} {
		stored := Grant{Lease: randflake.Lease{Start: start.Add(tt.start),
			End: mine.grant.End.Add(tt.end)}, Nonce: tt.nonce, Version: tt.version,
			Acquired: "acquired"}
		if tt.other {
			stored.Acquired = "other"
		}
		if got := mine.meaning(stored, tt.acknowledged); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
