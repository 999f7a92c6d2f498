package traceid_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
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
	epoch = time.UnixMilli(traceid.EpochMillis).UTC()
	last  = time.UnixMilli(traceid.EpochMillis + traceid.MaxMillis).UTC()
)

// The layout's known answers. Other programs and stored data rely on them.
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
		if got := traceid.Time(id); !got.Equal(tt.time) || got.Location() != time.UTC {
			t.Errorf("%s: time %v, want %v", tt.id, got, tt.time)
		}
		if got := traceid.Sequence(id); got != tt.sequence {
			t.Errorf("%s: sequence %d, want %d", tt.id, got, tt.sequence)
		}
	}
	if want := time.Date(2089, 9, 6, 15, 47, 35, 551_000_000, time.UTC); !last.Equal(want) {
		t.Errorf("the last millisecond is %v, want %v as documented", last, want)
	}
}

func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		at := epoch.Add(time.Duration(r.Int64N(int64(last.Sub(epoch)))))
		lo, hi := traceid.Min(at), traceid.Max(at)
		ms := at.Truncate(time.Millisecond)
		if !traceid.Time(lo).Equal(ms) || !traceid.Time(hi).Equal(ms) {
			t.Fatalf("bounds of %v: %v and %v", at, traceid.Time(lo), traceid.Time(hi))
		}
		before, after := traceid.Max(at.Add(-time.Millisecond)), traceid.Min(at.Add(time.Millisecond))
		if !at.Before(epoch.Add(time.Millisecond)) && bytes.Compare(before[:], lo[:]) >= 0 {
			t.Fatalf("%s is not before %s", before, lo)
		}
		if bytes.Compare(lo[:], hi[:]) >= 0 || bytes.Compare(hi[:], after[:]) >= 0 {
			t.Fatalf("%s, %s and %s are not in order", lo, hi, after)
		}
	}
	first := traceid.Min(epoch)
	top := traceid.Max(last)
	for _, at := range []time.Time{{}, time.Unix(0, 0), epoch.Add(-1), time.Unix(math.MinInt64, 0)} {
		if got := traceid.Min(at); got != first {
			t.Errorf("MinTraceID(%v) = %s, want %s", at, got, first)
		}
		if got, want := traceid.Max(at), traceid.Max(epoch); got != want {
			t.Errorf("MaxTraceID(%v) = %s, want %s", at, got, want)
		}
	}
	for _, at := range []time.Time{last.Add(time.Millisecond), time.Unix(math.MaxInt64, 0), time.Unix(1<<40, 0)} {
		if got := traceid.Max(at); got != top {
			t.Errorf("MaxTraceID(%v) = %s, want %s", at, got, top)
		}
		if got, want := traceid.Min(at), traceid.Min(last); got != want {
			t.Errorf("MinTraceID(%v) = %s, want %s", at, got, want)
		}
	}
}

func TestPlausible(t *testing.T) {
	const day = 24 * time.Hour
	at := traceid.Min(noon)
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
		{"UUIDv7 at noon", parse(t, "019cec37b7f47000a000000000000000"), noon, false},
		{"all zero", trace.TraceID{}, epoch, false},
	} {
		if got := traceid.Plausible(tt.id, tt.now, day, time.Minute); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestNew(t *testing.T) {
	const low = randflake.ID(0x0123456789abcdef)
	far := time.Date(290_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		at       time.Time
		sequence uint32
		low      randflake.ID
		want     string
		err      error
	}{
		{"some", noon, 5, low, "16c6e867fa0000050123456789abcdef", nil},
		{"within the millisecond", noon.Add(999_999), 5, low, "16c6e867fa0000050123456789abcdef", nil},
		{"another zone", noon.In(time.FixedZone("", 3600)), 5, low, "16c6e867fa0000050123456789abcdef", nil},
		{"highest sequence", noon, traceid.MaxSequence, low, "16c6e867fa7fffff0123456789abcdef", nil},
		{"first", epoch, 1, 1, "00000000000000010000000000000001", nil},
		{"last", last.Add(999_999), traceid.MaxSequence, ^randflake.ID(0), "ffffffffffffffffffffffffffffffff", nil},
		{"sequence too high", noon, traceid.MaxSequence + 1, low, "", traceid.ErrInvalidParts},
		{"high half zero", epoch, 0, low, "", traceid.ErrInvalidParts},
		{"low half zero", noon, 5, 0, "", traceid.ErrInvalidParts},
		{"too early", epoch.Add(-1), 5, low, "", traceid.ErrBeforeEpoch},
		{"zero time", time.Time{}, 5, low, "", traceid.ErrBeforeEpoch},
		{"too late", last.Add(time.Millisecond), 5, low, "", traceid.ErrAfterEnd},
		{"far too late", far, 5, low, "", traceid.ErrAfterEnd},
	} {
		id, err := traceid.New(tt.at, tt.sequence, tt.low)
		if !errors.Is(err, tt.err) || err == nil && id.String() != tt.want || err != nil && id.IsValid() {
			t.Errorf("%s: %s, %v; want %s, %v", tt.name, id, err, tt.want, tt.err)
		}
		if err != nil {
			continue
		}
		if at := traceid.Time(id); !at.Equal(tt.at.Truncate(time.Millisecond)) || traceid.Sequence(id) != tt.sequence || traceid.Low(id) != tt.low {
			t.Errorf("%s reads as %v, %d, %v", id, at, traceid.Sequence(id), traceid.Low(id))
		}
	}
}

// Milliseconds of far years overflow, and may look like valid ones.
func TestMillisOfAFarYear(t *testing.T) {
	const wrap = 18_446_744_073_709_552 // seconds: the first one after 2^64 ms
	for _, s := range []int64{wrap, -wrap} {
		far := time.Unix(s+noon.Unix(), 0)
		if ms, err := traceid.Millis(far); err == nil {
			t.Errorf("year %d is millisecond %d", far.Year(), ms)
		}
	}
}
