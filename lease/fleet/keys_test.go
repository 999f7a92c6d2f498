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
	noon, secrets := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), k.Codecs()
	history := func(id string, begun time.Duration, secret int) lease.History {
		h := lease.History{ID: id, Begun: noon.Add(begun)}
		h.Secret = h.Fingerprint(secrets[secret])
		return h
	}
	const day = 24 * time.Hour
	a, b, c := history("a", -2*day, 0), history("b", -day, 0), history("c", 0, 1)
	keys := Keys(k, lease.Description{LongestTTL: 10 * time.Minute, History: c,
		Earlier: []lease.History{b,
			{ID: "x", Begun: noon.Add(-36 * time.Hour), Secret: "lost"}, a}})
	var want [][32]byte
	for _, h := range []lease.History{c, b, a} {
		codec, err := h.Codec(k)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, codec.Derive(""))
	}
	want = append(want, secrets[2].Derive(""))
	for i, codec := range keys.Codecs() {
		if i >= len(want) || codec.Derive("") != want[i] {
			t.Errorf("key %d is not the history's, or there are too many", i)
		}
	}
	for at, want := range map[time.Duration][]int{
		0:                  {0, 1, 3},
		69 * time.Minute:   {0, 1, 3},
		70 * time.Minute:   {0, 3},
		1000 * day:         {0, 3},
		-time.Hour:         {0, 1, 3},
		-time.Hour - 1:     {1, 3},
		-36 * time.Hour:    {2, 3},
		-2*day - time.Hour: {2, 3},
		-3 * day:           {3},
	} {
		var got []int
		for i := range keys.At(noon.Add(at)) {
			got = append(got, i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %s: %v, want %v", at, got, want)
		}
	}
	// A history has begun, however far the clock of the process that began it was ahead.
	ahead := history("d", time.Since(noon)+5*time.Hour, 0)
	for i := range Keys(k, lease.Description{History: ahead}).At(time.Now()) {
		if i == 0 {
			return
		}
	}
	t.Error("the key of a history that begins in 5 hours is not used")
}
