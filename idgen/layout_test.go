package idgen_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
)

func parse(t testing.TB, s string) trace.TraceID {
	t.Helper()
	id, err := trace.TraceIDFromHex(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return id
}

var (
	epoch = time.UnixMilli(idgen.EpochMillis).UTC()
	last  = time.UnixMilli(idgen.EpochMillis + 1<<41 - 1).UTC()
)

// The layout's known answers: other programs and stored data rely on them.
func TestLayout(t *testing.T) {
	for _, tt := range []struct {
		id       string
		time     time.Time
		sequence uint32
	}{
		{"00000000000000010000000000000000", epoch, 1},
		{"0000000000800000ffffffffffffffff", epoch.Add(time.Millisecond), 0},
		{"00000000007fffff0000000000000001", epoch, 1<<23 - 1},
		{"16c6e867fa0000050123456789abcdef", time.Date(2026, 3, 14, 12, 0, 0, 500_000_000, time.UTC), 5},
		{"ffffffffffffffffffffffffffffffff", last, 1<<23 - 1},
		{"ffffffffff8000000000000000000000", last, 0},
	} {
		id := parse(t, tt.id)
		if got := idgen.Time(id); !got.Equal(tt.time) || got.Location() != time.UTC {
			t.Errorf("%s: time %v, want %v", tt.id, got, tt.time)
		}
		if got := idgen.Sequence(id); got != tt.sequence {
			t.Errorf("%s: sequence %d, want %d", tt.id, got, tt.sequence)
		}
	}
	if want := time.Date(2089, 9, 6, 15, 47, 35, 551_000_000, time.UTC); !last.Equal(want) {
		t.Errorf("the last millisecond is %v, docs say %v", last, want)
	}
}

func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		at := epoch.Add(time.Duration(r.Int64N(int64(last.Sub(epoch)))))
		lo, hi := idgen.MinTraceID(at), idgen.MaxTraceID(at)
		ms := at.Truncate(time.Millisecond)
		if !idgen.Time(lo).Equal(ms) || !idgen.Time(hi).Equal(ms) {
			t.Fatalf("bounds of %v: %v and %v", at, idgen.Time(lo), idgen.Time(hi))
		}
		before, after := idgen.MaxTraceID(at.Add(-time.Millisecond)), idgen.MinTraceID(at.Add(time.Millisecond))
		if !at.Before(epoch.Add(time.Millisecond)) && bytes.Compare(before[:], lo[:]) >= 0 {
			t.Fatalf("%s is not before %s", before, lo)
		}
		if bytes.Compare(lo[:], hi[:]) >= 0 || bytes.Compare(hi[:], after[:]) >= 0 {
			t.Fatalf("%s, %s and %s are not in order", lo, hi, after)
		}
	}
	first := idgen.MinTraceID(epoch)
	top := idgen.MaxTraceID(last)
	for _, at := range []time.Time{{}, time.Unix(0, 0), epoch.Add(-1), time.Unix(math.MinInt64, 0)} {
		if got := idgen.MinTraceID(at); got != first {
			t.Errorf("MinTraceID(%v) = %s, want %s", at, got, first)
		}
		if got, want := idgen.MaxTraceID(at), idgen.MaxTraceID(epoch); got != want {
			t.Errorf("MaxTraceID(%v) = %s, want %s", at, got, want)
		}
	}
	for _, at := range []time.Time{last.Add(time.Millisecond), time.Unix(math.MaxInt64, 0), time.Unix(1<<40, 0)} {
		if got := idgen.MaxTraceID(at); got != top {
			t.Errorf("MaxTraceID(%v) = %s, want %s", at, got, top)
		}
		if got, want := idgen.MinTraceID(at), idgen.MinTraceID(last); got != want {
			t.Errorf("MinTraceID(%v) = %s, want %s", at, got, want)
		}
	}
}

func TestPlausible(t *testing.T) {
	const day = 24 * time.Hour
	at := idgen.MinTraceID(noon)
	for _, tt := range []struct {
		name string
		id   trace.TraceID
		now  time.Time
		want bool
	}{
		{"now", at, noon, true},
		{"oldest", at, noon.Add(day), true},
		{"too old", at, noon.Add(day + time.Millisecond), false},
		{"ahead", at, noon.Add(-time.Minute), true},
		{"too far ahead", at, noon.Add(-time.Minute - time.Millisecond), false},
		{"64 bits, padded", parse(t, "00000000000000000123456789abcdef"), epoch, false},
		{"the epoch itself", parse(t, "00000000000000010123456789abcdef"), epoch, true},
		{"UUIDv7 of noon", parse(t, "019cec37b7f47000a000000000000000"), noon, false},
		{"all zero", trace.TraceID{}, epoch, false},
	} {
		if got := idgen.Plausible(tt.id, tt.now, day, time.Minute); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestNewTraceIDAt(t *testing.T) {
	clock := newClock(noon)
	source := newSource(t, clock)
	g := idgen.New(idgen.WithSource(source), idgen.WithClock(clock))
	codec := newCodec(t, fleetSecret)
	verifier := idgen.NewVerifier([]*randflake.Codec{codec}, idgen.WithVerifierClock(clock), idgen.WithMaxAge(100*365*24*time.Hour))
	live, _ := g.NewIDs(t.Context())

	seen := map[trace.TraceID]bool{live: true}
	for _, at := range []time.Time{
		epoch, epoch.Add(time.Millisecond), time.Date(2021, 5, 6, 7, 8, 9, 123_456_789, time.UTC),
		noon.Add(-time.Hour), noon.Add(time.Hour), last,
	} {
		var before trace.TraceID
		for range 1000 {
			id, err := g.NewTraceIDAt(at)
			if err != nil || !id.IsValid() || seen[id] {
				t.Fatalf("at %v: %s, %v", at, id, err)
			}
			seen[id] = true
			if !idgen.Time(id).Equal(at.Truncate(time.Millisecond)) {
				t.Fatalf("at %v: an ID of %v", at, idgen.Time(id))
			}
			if bytes.Compare(id[:], before[:]) <= 0 {
				t.Fatalf("at %v: %s after %s", at, id, before)
			}
			before = id
			info := idgen.Inspect(codec, id)
			if info.Agree || info.Parts.Time.Before(noon.Add(-time.Second)) || info.Parts.Node&^7 != 64 {
				t.Fatalf("at %v: %+v", at, info)
			}
			if verifier.Verify(id) {
				t.Fatalf("at %v: %s is verified", at, id)
			}
		}
	}
	if id, err := g.NewTraceIDAt(epoch); err != nil || id[7] == 0 && id[6] == 0 {
		t.Errorf("at the epoch: %s, %v", id, err)
	}

	// Live IDs go on as if nothing had happened.
	next, _ := g.NewIDs(t.Context())
	if bytes.Compare(next[:], live[:]) <= 0 || !idgen.Time(next).Equal(noon) {
		t.Errorf("%s after %s", next, live)
	}

	for _, tt := range []struct {
		at   time.Time
		want error
	}{
		{time.Time{}, idgen.ErrBeforeEpoch},
		{time.Unix(0, 0), idgen.ErrBeforeEpoch},
		{epoch.Add(-1), idgen.ErrBeforeEpoch},
		{last.Add(time.Millisecond), idgen.ErrAfterEnd},
		{time.Unix(math.MaxInt64, 0), idgen.ErrAfterEnd},
	} {
		if id, err := g.NewTraceIDAt(tt.at); !errors.Is(err, tt.want) || id.IsValid() {
			t.Errorf("at %v: %s, %v; want %v", tt.at, id, err, tt.want)
		}
	}
}
