package traceid_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/internal/vectors"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// vector is a known answer.
type vector struct {
	Name, ID, Low, Wrong, Min, Max, Secret string
	UnixMS                                 *int64 `json:"unix_ms"`
	NotBeforeMS                            *int64 `json:"not_before_ms"`
	Sequence                               int64
	Agree                                  bool
}

type format struct {
	EpochMS                          int64 `json:"epoch_ms"`
	IDs, Bounds, Kinds, Read, Halves []vector
	Bound                            []struct {
		vector
		SlackMS int64 `json:"slack_ms"`
		NowMS   int64 `json:"now_ms"`
	}
	NoID             []vector `json:"no_id"`
	Order, Malformed []string
	KindsNowMS       int64 `json:"kinds_now_ms"`
}

// make returns the ID of the last nanosecond of a vector's millisecond, in some time zone.
func (v vector) make(t *testing.T) (trace.TraceID, error) {
	low, err := strconv.ParseUint(v.Low, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(*v.UnixMS).Add(999_999).In(time.FixedZone("", 3600))
	return traceid.New(at, uint32(v.Sequence), randflake.ID(low))
}

func TestFormat(t *testing.T) {
	f := vectors.Read[format](t)
	if f.EpochMS != layout.EpochMillis {
		t.Errorf("the epoch is %d, want %d", int64(layout.EpochMillis), f.EpochMS)
	}
	for _, v := range f.IDs {
		id, err := v.make(t)
		at, low := traceid.Time(id), fmt.Sprintf("%016x", uint64(traceid.Low(id)))
		if err != nil || id.String() != v.ID || at.UnixMilli() != *v.UnixMS ||
			at.Location() != time.UTC ||
			traceid.Inspect(nil, id).Sequence != uint32(v.Sequence) || low != v.Low {
			t.Errorf("%+v: %s, %v: %+v, low half %s", v, id, err, traceid.Inspect(nil, id), low)
		}
	}
	for _, v := range f.NoID {
		if v.Sequence < 0 || v.Sequence > math.MaxUint32 || len(v.Low) > 16 {
			continue // not a uint32, or not a uint64
		}
		id, err := v.make(t)
		if err == nil || id.IsValid() ||
			errors.Is(err, traceid.ErrOutOfRange) != (v.Wrong == "time") {
			t.Errorf("%s: %s, %v", v.Name, id, err)
		}
	}
	for _, text := range f.Malformed {
		if id, err := trace.TraceIDFromHex(text); err == nil {
			t.Errorf("%q is read as %s", text, id)
		}
	}
	// an ID without a time is not plausible at the time that its zeros would be
	for _, v := range f.Read {
		id, at := parse(t, v.ID), epoch
		if v.UnixMS != nil {
			at = time.UnixMilli(*v.UnixMS)
		}
		recent := traceid.NewVerifier(nil, traceid.WithClock(fixed(at)), traceid.WithPlausible(0),
			traceid.WithSkew(0))
		got, t1 := recent.Plausible(id), traceid.Time(id)
		if got != (v.UnixMS != nil) || got == t1.IsZero() || got && !t1.Equal(at) {
			t.Errorf("%s: time %s, plausible: %v", v.Name, t1, got)
		}
	}
	for _, v := range f.Halves {
		id, keys := parse(t, v.ID), newKeyring(t, v.Secret)
		verifier := traceid.NewVerifier(keys, traceid.WithClock(fixed(traceid.Time(id))))
		if info := traceid.Inspect(keys, id); info.Agree != v.Agree ||
			verifier.Verify(id) != v.Agree {
			t.Errorf("%s: %+v, want %v", v.Name, info, v.Agree)
		}
	}
	for _, v := range f.Bounds {
		at := time.UnixMilli(*v.UnixMS)
		if low, high := traceid.Min(at), traceid.Max(at); low.String() != v.Min ||
			high.String() != v.Max {
			t.Errorf("%s: %s to %s, want %s to %s", v.Name, low, high, v.Min, v.Max)
		}
	}
	for i := 1; i < len(f.Order); i++ {
		a, b := parse(t, f.Order[i-1]), parse(t, f.Order[i])
		if bytes.Compare(a[:], b[:]) >= 0 || traceid.Time(a).After(traceid.Time(b)) {
			t.Errorf("%s is not before %s", a, b)
		}
	}
}
