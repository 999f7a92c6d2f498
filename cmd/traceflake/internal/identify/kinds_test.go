package identify

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// The vectors that other languages use, too.
func TestKinds(t *testing.T) {
	text, err := os.ReadFile("../../../../testdata/format.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Now   int64 `json:"kinds_now_ms"`
		Kinds []struct {
			Name, ID string
			Kinds    []string
			Time     *int64 `json:"time_ms"`
		}
	}
	if err := json.Unmarshal(text, &f); err != nil || len(f.Kinds) == 0 {
		t.Fatalf("%d vectors, %v", len(f.Kinds), err)
	}
	for _, v := range f.Kinds {
		all, err := Identifier{Now: time.UnixMilli(f.Now)}.ID(v.ID)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i, c := range all {
			names = append(names, c.Kind)
			if c.Time.IsZero() != (c.Kind == kindShort || c.Kind == kindRandom) || i > 0 && c.FalsePositives <= all[i-1].FalsePositives {
				t.Errorf("%s: %+v", v.Name, all)
			}
		}
		first := all[0].Time
		if !slices.Equal(names, v.Kinds) || first.IsZero() != (v.Time == nil) || v.Time != nil && first.UnixMilli() != *v.Time {
			t.Errorf("%s: %+v, want %s", v.Name, all, v.Kinds)
		}
		if all, err := (Identifier{Now: time.Unix(0, 0)}).ID(v.ID); err != nil || len(all) != 1 || !all[0].Time.IsZero() {
			t.Errorf("%s, with a clock in 1970: %v, %v", v.Name, all, err)
		}
	}
}

// Of random IDs, as many look like a kind as its FalsePositives says.
func TestKindsByChance(t *testing.T) {
	const n = 100_000
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	r := rand.New(rand.NewPCG(1, 2))
	seen, chance := map[string]float64{}, map[string]float64{}
	for range n {
		var id trace.TraceID
		binary.BigEndian.PutUint64(id[:8], r.Uint64())
		for _, c := range (Identifier{Now: now}).kinds(id) {
			seen[c.Kind]++
			chance[c.Kind] = c.FalsePositives
		}
	}
	for _, kind := range []string{kindTraceflake, kindULID, kindXRay, kindRandom} {
		want := n * chance[kind]
		if got := seen[kind]; got == 0 || math.Abs(got-want) > 6*math.Sqrt(want) {
			t.Errorf("%s: %g of %d, want %g by its chance", kind, got, n, want)
		}
	}
	if seen[kindDatadog] > 0 {
		t.Errorf("random bits look like kinds that they cannot: %v", seen)
	}
}
