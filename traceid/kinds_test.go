package traceid_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// Of random IDs, as many look like a kind as its Chance says.
func TestKindsByChance(t *testing.T) {
	const n = 300_000
	r := rand.New(rand.NewPCG(1, 2))
	seen, chance := map[string]float64{}, map[string]float64{}
	for range n {
		var id trace.TraceID
		binary.BigEndian.PutUint64(id[:8], r.Uint64())
		binary.BigEndian.PutUint64(id[8:], r.Uint64())
		for _, k := range traceid.Kinds(id, noon) {
			seen[k.Name]++
			chance[k.Name] = k.Chance
		}
	}
	for _, name := range []string{traceid.KindTraceflake, traceid.KindULID, traceid.KindXRay, traceid.KindRandom} {
		want := n * chance[name]
		if got := seen[name]; got == 0 || math.Abs(got-want) > 6*math.Sqrt(want) {
			t.Errorf("%s: %g of %d, want %g by its chance", name, got, n, want)
		}
	}
	if seen[traceid.KindDatadog]+seen[traceid.KindShort] > 0 {
		t.Errorf("random bits look like kinds that they cannot: %v", seen)
	}
}
