package rivals

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/traceflake/traceflake/bench/internal/gens"
)

// Every rival does what the table says: the size, no duplicate, and the order. The first bytes are
// the time if IDs are ordered, unless they are ordered strictly.
func TestRivalsAreWhatTheTableSays(t *testing.T) {
	set, err := gens.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := libraries()
	if err != nil {
		t.Fatal(err)
	}
	more, err := generators(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	// The number of bytes of time before random bits or a counter.
	timeBytes := map[string]int{
		"gofrs/uuid v6": 8, "segmentio/ksuid": 4, "contrib's X-Ray generator": 4, "uptrace-go": 8,
		"traceflake, zero configuration": 5, "traceflake, leased nodes": 5,
	}
	for _, r := range append(all, more...) {
		const many = 2000
		strictly, none, wraps := strings.Contains(r.ordered, "strictly in a process"), strings.HasPrefix(r.ordered, "no"), r.who == "rs/xid"
		seen := make(map[string]bool)
		var last []byte
		back := 0
		for range many {
			id := r.next()
			seen[string(id)] = true
			if size, _, _ := strings.Cut(r.bits, " "); size != strconv.Itoa(8*len(id)) && (size != "63" || len(id) != 8 || id[0] > 127) {
				t.Errorf("%s: %x has not %s bits", r.who, id, r.bits)
			}
			first := id
			if n := timeBytes[r.who]; n > 0 {
				first = id[:n]
			}
			if order := bytes.Compare(last, first); order > 0 || order == 0 && strictly {
				back++
			}
			last = first
		}
		if len(seen) != many {
			t.Errorf("%s: only %d of %d IDs differ", r.who, len(seen), many)
		}
		if sorted := back == 0 || wraps && back == 1; !sorted && !none {
			t.Errorf("%s: %q, but %d of %d IDs do not follow the one before", r.who, r.ordered, back, many)
		} else if sorted && r.ordered == "no" {
			t.Errorf("%s: sorts, although the table denies it", r.who)
		}
	}
	if err := set.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestEveryRivalHasItsRow(t *testing.T) {
	costs, err := Measure(t.Context(), io.Discard, 2)
	if err != nil {
		t.Fatal(err)
	}
	table := Report(costs)
	if len(costs) != 15 || strings.Count(table, "\n| ") != 1+len(costs) {
		t.Errorf("%d rivals:\n%s", len(costs), table)
	}
	for _, c := range costs {
		least := map[string]float64{"sony/sonyflake": 10e6 / 256, "bwmarrin/snowflake": 1e6 / 4096}[c.who]
		if c.ns < 0.9*least {
			t.Errorf("%s takes %g ns a call, but its sequence allows no less than %g", c.who, c.ns, least)
		}
	}
}
