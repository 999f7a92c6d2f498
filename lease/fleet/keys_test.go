package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// Each history has its key at its own times only. Secrets of no history are keys.
func TestKeys(t *testing.T) {
	k, err := randflake.ParseKeyring("00112233445566778899aabbccddeeff\n" +
		"dffd6021bb2bd5b0af676290809ec3a5\nffeeddccbbaa99887766554433221100")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	history := func(id string, begun time.Time, secret int) lease.History {
		h := lease.History{ID: id, Begun: begun}
		h.Secret = h.Fingerprint(k.Codecs()[secret])
		return h
	}
	day := 24 * time.Hour
	d := lease.Description{LongestTTL: 10 * time.Minute, History: history("c", noon, 1),
		Earlier: []lease.History{history("b", noon.Add(-day), 0),
			{ID: "x", Begun: noon.Add(-36 * time.Hour), Secret: "of a secret that is not here"},
			history("a", noon.Add(-2*day), 0)}}
	keys := Keys(k, d)
	codec := func(id string, secret int) *randflake.Codec {
		c, err := lease.HistoryCodec(k.Codecs()[secret], id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	same := func(a, b *randflake.Codec) bool { return a.Derive("") == b.Derive("") }
	want := []*randflake.Codec{codec("c", 1), codec("b", 0), codec("a", 0), k.Codecs()[2]}
	if !slices.EqualFunc(keys.Codecs(), want, same) {
		t.Errorf("%d keys, or other ones than the histories'", len(keys.Codecs()))
	}
	for at, want := range map[time.Time][]int{
		noon:                         {0, 1, 3},
		noon.Add(69 * time.Minute):   {0, 1, 3},
		noon.Add(70 * time.Minute):   {0, 3},
		noon.Add(1000 * day):         {0, 3},
		noon.Add(-time.Hour):         {0, 1, 3},
		noon.Add(-time.Hour - 1):     {1, 3},
		noon.Add(-36 * time.Hour):    {2, 3},
		noon.Add(-2*day - time.Hour): {2, 3},
		noon.Add(-3 * day):           {3},
	} {
		var got []int
		for i := range keys.At(at) {
			got = append(got, i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %s: %v, want %v", at, got, want)
		}
	}
}
