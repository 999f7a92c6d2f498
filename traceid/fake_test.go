package traceid_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// noon is a time at which everything works; epoch is the first that an ID encodes.
var (
	noon  = time.Date(2026, 3, 14, 12, 0, 0, 500_000_000, time.UTC)
	epoch = time.UnixMilli(traceid.EpochMillis).UTC()
)

// fixed is a clock that does not move.
type fixed time.Time

func (c fixed) Now() time.Time { return time.Time(c) }

const fleetSecret = "the fleet secret"

func newKeyring(t testing.TB, secrets ...string) *randflake.Keyring {
	t.Helper()
	var lines []string
	for _, s := range secrets {
		lines = append(lines, hex.EncodeToString([]byte(s)))
	}
	k, err := randflake.ParseKeyring(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// assemble returns an ID under k's first secret whose halves have these times.
func assemble(t testing.TB, k *randflake.Keyring, clear, second time.Time) trace.TraceID {
	t.Helper()
	low, err := k.Codec().Encode(randflake.Parts{Time: second, Node: 42, Sequence: 1})
	if err != nil {
		t.Fatal(err)
	}
	id, err := traceid.New(clear, 5, low)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func parse(t testing.TB, s string) trace.TraceID {
	t.Helper()
	id, err := trace.TraceIDFromHex(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return id
}
