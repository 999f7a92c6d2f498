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
	c := confirmed{
		Grant{Lease: randflake.Lease{Start: start, End: start.Add(10 * s)}, Nonce: "mine",
			Version: 3},
		[]string{"first", "second"},
	}
	for name, tt := range map[string]struct {
		nonce      string
		version    uint64
		start, end time.Duration // later than in the grant
		want       answer
	}{
		"not written":                            {"mine", 3, 0, 0, unwritten},
		"an older version":                       {"mine", 2, 0, 0, forgotten},
		"an earlier end":                         {"second", 4, 0, -s, forgotten},
		"my nonce, an earlier end":               {"mine", 3, 0, -s, forgotten},
		"my nonce, a newer version":              {"mine", 4, 0, 5 * s, lost},
		"my nonce, another start":                {"mine", 3, 40 * s, 40 * s, lost},
		"my nonce, another start and version":    {"mine", 5, 40 * s, 40 * s, lost},
		"the last nonce":                         {"second", 4, 0, 5 * s, late},
		"an earlier nonce":                       {"first", 4, 0, 5 * s, late},
		"an earlier nonce, and a later write":    {"first", 5, 0, 5 * s, copied},
		"an earlier nonce, another start":        {"first", 4, 40 * s, 40 * s, lost},
		"never granted, an earlier end":          {"", 0, 0, -s, forgotten},
		"another's nonce":                        {"another's", 4, 0, 5 * s, copied},
		"another's nonce, my version":            {"another's", 3, 0, 0, copied},
		"another's nonce, another start":         {"another's", 5, 40 * s, 40 * s, lost},
		"another's nonce, my version, moved end": {"another's", 3, 0, 5 * s, copied},
	} {
		stored := Grant{Lease: randflake.Lease{Start: start.Add(tt.start),
			End: c.grant.End.Add(tt.end)}, Nonce: tt.nonce, Version: tt.version}
		if got := c.meaning(stored); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// What the block means that the store returned for a renewal.
func TestAcknowledged(t *testing.T) {
	end := time.Unix(1_800_000_000, 0)
	c := confirmed{grant: Grant{Lease: randflake.Lease{End: end}, Version: 3}}
	for _, tt := range []struct {
		version uint64
		end     time.Duration // later than in the grant
		want    answer
	}{{4, time.Second, written}, {4, 0, written}, {4, -time.Second, forgotten},
		{2, time.Second, forgotten}} {
		stored := Grant{Lease: randflake.Lease{End: end.Add(tt.end)}, Version: tt.version}
		if got := c.acknowledged(stored); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}
