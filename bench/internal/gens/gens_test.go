package gens

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestEveryGeneratorMakesIDs(t *testing.T) {
	set, err := New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{Default, Again, Traceflake, Leased, XRay}
	for _, name := range names {
		id, span := set.Of(name).NewIDs(t.Context())
		if next := set.Of(name).NewSpanID(t.Context(), id); !id.IsValid() || !span.IsValid() || !next.IsValid() || next == span {
			t.Errorf("%s: %s, %s, %s", name, id, span, next)
		}
	}
	if set.Of(Default) != set.Of(Again) {
		t.Error("the two entries are not the same generator")
	}
	for _, op := range []Operation{NewIDs, NewSpanID} {
		for i, s := range set.Subjects(op, names...) {
			if s.Name != names[i] {
				t.Errorf("subject %d is %s", i, s.Name)
			}
			if s.Run(100); testing.AllocsPerRun(10, func() { s.Run(10) }) > 0 && names[i] != XRay {
				t.Errorf("%s of %s allocates", op, s.Name)
			}
		}
	}
	if err := set.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Random IDs of the fallback must not be measured as the generator's.
func TestFallbackIsAnError(t *testing.T) {
	set, err := New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := set.keeper.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	set.Of(Leased).NewSpanID(context.Background(), trace.TraceID{})
	if err := set.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "1 calls got random IDs of the fallback") {
		t.Errorf("got %v", err)
	}
}
