package idgen

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// The first and the last time that a trace ID can encode.
var (
	epoch = time.UnixMilli(traceid.EpochMillis).UTC()
	last  = time.UnixMilli(traceid.EpochMillis + traceid.MaxMillis).UTC()
)

func TestNewTraceIDAt(t *testing.T) {
	clock := newClock(noon)
	g := New(WithSource(newSource(t, clock)), WithClock(clock))
	keyring := randflake.NewKeyring(newCodec(t, fleetSecret))
	verifier := traceid.NewVerifier(keyring, traceid.WithClock(clock), traceid.WithMaxAge(100*365*24*time.Hour))
	live, _ := g.NewIDs(t.Context())
	for _, at := range []time.Time{
		epoch, epoch.Add(time.Millisecond), time.Date(2021, 5, 6, 7, 8, 9, 123_456_789, time.UTC),
		noon.Add(-time.Hour), noon.Add(time.Hour), last,
	} {
		var before trace.TraceID
		for range 1000 {
			id, err := g.NewTraceIDAt(at)
			if err != nil || !id.IsValid() || bytes.Compare(id[:], before[:]) <= 0 || !traceid.Time(id).Equal(at.Truncate(time.Millisecond)) {
				t.Fatalf("at %v: %s of %v after %s, %v", at, id, traceid.Time(id), before, err)
			}
			before = id
			info := traceid.Inspect(keyring, id)
			if info.Agree || info.Parts.Time.Before(noon.Add(-time.Second)) || info.Parts.Node&^7 != 64 || verifier.Verify(id) {
				t.Fatalf("at %v: %+v, verified: %v", at, info, verifier.Verify(id))
			}
		}
	}

	// The sequence starts again after 2^23 calls, in the same millisecond.
	g.backfilled.Store(traceid.MaxSequence - 1)
	for _, want := range []uint32{traceid.MaxSequence, 0, 1} {
		if id, err := g.NewTraceIDAt(noon); err != nil || !traceid.Time(id).Equal(noon) || traceid.Sequence(id) != want {
			t.Errorf("%s, %v: sequence %d of %v, want %d", id, err, traceid.Sequence(id), traceid.Time(id), want)
		}
	}

	// Live IDs are not affected.
	next, _ := g.NewIDs(t.Context())
	if bytes.Compare(next[:], live[:]) <= 0 || !traceid.Time(next).Equal(noon) {
		t.Errorf("%s after %s", next, live)
	}
	for at, want := range map[time.Time]error{epoch.Add(-1): traceid.ErrBeforeEpoch, last.Add(time.Millisecond): traceid.ErrAfterEnd} {
		if id, err := g.NewTraceIDAt(at); !errors.Is(err, want) || id.IsValid() {
			t.Errorf("at %v: %s, %v; want %v", at, id, err, want)
		}
	}
}
