package idgen_test

import (
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
)

func TestInspect(t *testing.T) {
	clock := newClock(noon)
	codec := newCodec(t, fleetSecret)
	g := idgen.New(idgen.WithClock(clock), idgen.WithSource(newSource(t, clock)))
	id, _ := g.NewIDs(t.Context())

	got := idgen.Inspect(codec, id)
	want := idgen.Info{
		TraceID: id, Time: noon, Sequence: idgen.Sequence(id), Low: got.Low, Agree: true,
		Parts: randflake.Parts{Time: noon.Truncate(time.Second), Node: got.Parts.Node, Sequence: got.Parts.Sequence},
	}
	if got != want || fmt.Sprintf("%016x", uint64(got.Low)) != id.String()[16:] {
		t.Errorf("%+v, want %+v", got, want)
	}
	if other := idgen.Inspect(newCodec(t, "another secret!!"), id); other.Agree || !other.Time.Equal(noon) {
		t.Errorf("with another secret: %+v", other)
	}
	if clear := idgen.Inspect(nil, id); clear.Agree || clear.Parts != (randflake.Parts{}) || !clear.Time.Equal(noon) {
		t.Errorf("without a secret: %+v", clear)
	}
	if zero := idgen.Inspect(codec, trace.TraceID{}); zero.Agree {
		t.Errorf("of the invalid ID: %+v", zero)
	}
}

// An ID put together by hand, to try the edges of the tolerance.
func assemble(t *testing.T, c *randflake.Codec, clear, second time.Time) trace.TraceID {
	t.Helper()
	low, err := c.Encode(randflake.Parts{Time: second, Node: 1, Sequence: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := idgen.MinTraceID(clear)
	for i := range 8 {
		id[8+i] = byte(low >> (56 - 8*i))
	}
	return id
}

func TestVerifier(t *testing.T) {
	codec, old := newCodec(t, fleetSecret), newCodec(t, "the last secret!")
	second := noon.Truncate(time.Second)
	for _, tt := range []struct {
		name  string
		id    trace.TraceID
		now   time.Time
		opts  []idgen.VerifierOption
		wants bool
	}{
		{"made now", assemble(t, codec, noon, second), noon, nil, true},
		{"made under the last secret", assemble(t, old, noon, second), noon, nil, true},
		{"low half borrowed", assemble(t, codec, second, second.Add(2*time.Second)), noon, nil, true},
		{"low half borrowed too far", assemble(t, codec, second, second.Add(3*time.Second)), noon, nil, false},
		{"clear half held", assemble(t, codec, second.Add(2999*time.Millisecond), second), noon, nil, true},
		{"clear half held too far", assemble(t, codec, second.Add(3*time.Second), second), noon, nil, false},
		{"held, with a larger tolerance", assemble(t, codec, second.Add(3*time.Second), second), noon,
			[]idgen.VerifierOption{idgen.WithTolerance(3 * time.Second)}, true},
		{"a day old", assemble(t, codec, noon, second), noon.Add(24 * time.Hour), nil, true},
		{"older", assemble(t, codec, noon, second), noon.Add(24*time.Hour + time.Millisecond), nil, false},
		{"older, allowed", assemble(t, codec, noon, second), noon.Add(72 * time.Hour),
			[]idgen.VerifierOption{idgen.WithMaxAge(73 * time.Hour)}, true},
		{"a minute ahead", assemble(t, codec, noon, second), noon.Add(-time.Minute), nil, true},
		{"further ahead", assemble(t, codec, noon, second), noon.Add(-time.Minute - time.Millisecond), nil, false},
		{"further ahead, allowed", assemble(t, codec, noon, second), noon.Add(-time.Hour),
			[]idgen.VerifierOption{idgen.WithSkew(time.Hour)}, true},
		{"64 bits", trace.TraceID{8: 1}, noon, nil, false},
		{"zero", trace.TraceID{}, noon, nil, false},
	} {
		v := idgen.NewVerifier([]*randflake.Codec{codec, nil, old}, append(tt.opts, idgen.WithVerifierClock(newClock(tt.now)))...)
		if got := v.Verify(tt.id); got != tt.wants {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	if idgen.NewVerifier(nil).Verify(idgen.MinTraceID(time.Now())) {
		t.Error("a verifier without codecs verifies")
	}
}
