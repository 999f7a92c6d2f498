package clickhouse_test

import (
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/clickhouse"
)

// Values up to each documented limit are accepted; beyond it, the error contains the limit.
func TestBounds(t *testing.T) {
	var s clickhouse.Schema
	traces := func(n int) error {
		_, err := clickhouse.Traces(s, make([][16]byte, n))
		return err
	}
	keep := func(ttl time.Duration) error {
		_, err := clickhouse.Schema{TTL: ttl}.Statements()
		return err
	}
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name string
		err  error
		want string // "" if it is taken
	}{
		{"no traces", traces(0), "no trace ID"},
		{"3000 traces", traces(3000), ""},
		{"3001 traces", traces(3001), "3001 trace IDs"},
		{"a TTL of a second", keep(time.Second), ""},
		{"a TTL of an odd number of seconds", keep(3 * time.Second), ""},
		{"a TTL of half a second", keep(time.Second / 2), "TTL 500ms"},
		{"a TTL of 50 years", keep(50 * year), ""},
		{"a longer TTL", keep(50*year + time.Second), "TTL 438000h0m1s"},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil &&
			(!strings.HasPrefix(c.err.Error(), "clickhouse: ") ||
				!strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, c.err, c.want)
		}
	}
}
