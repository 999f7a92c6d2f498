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
			Version: 3},
		pending: []string{"first", "second"},
	}
	for name, tt := range map[string]struct {
		nonce        string
		version      uint64
		start, end   time.Duration // later than in the grant
		acknowledged bool
		want         answer
	}{
		"acknowledged":                           {"second", 4, 0, 5 * s, true, written},
		"acknowledged, and the end stays":        {"second", 4, 0, 0, true, written},
		"acknowledged, an earlier end":           {"second", 4, 0, -s, true, forgotten},
		"acknowledged, an older version":         {"second", 2, 0, 5 * s, true, forgotten},
		"not written":                            {"mine", 3, 0, 0, false, unwritten},
		"an older version":                       {"mine", 2, 0, 0, false, forgotten},
		"an earlier end":                         {"second", 4, 0, -s, false, forgotten},
		"my nonce, an earlier end":               {"mine", 3, 0, -s, false, forgotten},
		"my nonce, a newer version":              {"mine", 4, 0, 5 * s, false, lost},
		"my nonce, another start":                {"mine", 3, 40 * s, 40 * s, false, lost},
		"my nonce, another start and version":    {"mine", 5, 40 * s, 40 * s, false, lost},
		"the last nonce":                         {"second", 4, 0, 5 * s, false, late},
		"an earlier nonce":                       {"first", 4, 0, 5 * s, false, late},
		"an earlier nonce, and a later write":    {"first", 5, 0, 5 * s, false, copied},
		"an earlier nonce, another start":        {"first", 4, 40 * s, 40 * s, false, lost},
		"never granted, an earlier end":          {"", 0, 0, -s, false, forgotten},
		"another's nonce":                        {"another's", 4, 0, 5 * s, false, copied},
		"another's nonce, my version":            {"another's", 3, 0, 0, false, copied},
		"another's nonce, another start":         {"another's", 5, 40 * s, 40 * s, false, lost},
		"another's nonce, my version, moved end": {"another's", 3, 0, 5 * s, false, copied},
	} {
		stored := Grant{Lease: randflake.Lease{Start: start.Add(tt.start),
			End: mine.grant.End.Add(tt.end)}, Nonce: tt.nonce, Version: tt.version}
		if got := mine.meaning(stored, tt.acknowledged); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
