package traceid_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

func TestKinds(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, id string
		want     []string
		time     string // of the first
	}{
		{"ours", "16c6e867fa0000050123456789abcdef", []string{traceid.KindTraceflake, traceid.KindRandom}, "2026-03-14T12:00:00.5Z"},
		{"RFC 9562's UUID v7", "017f22e279b07cc398c4dc0c0c07398f",
			[]string{traceid.KindUUIDv7, traceid.KindULID, traceid.KindTraceflake, traceid.KindRandom}, "2022-02-22T19:22:22Z"},
		{"another variant", "017f22e279b07cc3d8c4dc0c0c07398f",
			[]string{traceid.KindULID, traceid.KindTraceflake, traceid.KindRandom}, "2022-02-22T19:22:22Z"},
		{"the ULID specification's", "01563e3ab5d3d6764c61efb99302bd5b",
			[]string{traceid.KindULID, traceid.KindTraceflake, traceid.KindRandom}, "2016-07-30T23:54:10.259Z"},
		{"X-Ray", "58406520a006649127e371903a2de979", []string{traceid.KindXRay, traceid.KindRandom}, "2016-12-01T18:00:00Z"},
		{"Datadog", "640cfd8d00000000abcdefab12345678", []string{traceid.KindDatadog}, "2023-03-11T22:15:41Z"},
		{"B3, padded", "000000000000000080f198ee56343ba8", []string{traceid.KindShort}, ""},
		{"random", "fbf92f3577b3cda6a3ce929d0e0e4736", []string{traceid.KindRandom}, ""},
		{"an hour ahead", traceid.Min(now.Add(time.Hour)).String(), []string{traceid.KindTraceflake, traceid.KindRandom}, "2026-11-21T13:00:00Z"},
		{"further ahead", traceid.Min(now.Add(time.Hour + time.Millisecond)).String(), []string{traceid.KindRandom}, ""},
	} {
		kinds := traceid.Kinds(parse(t, c.id), now)
		ok := len(kinds) == len(c.want)
		for i := range kinds {
			ok = ok && kinds[i].Name == c.want[i] && (i == 0 || kinds[i-1].Chance < kinds[i].Chance)
		}
		if at, _ := time.Parse(time.RFC3339Nano, c.time); !ok || !kinds[0].Time.Equal(at) {
			t.Errorf("%s: %v, want %v and %s", c.name, kinds, c.want, c.time)
		}
	}
	early := time.Unix(0, 0)
	if kinds := traceid.Kinds(parse(t, "16c6e867fa0000050123456789abcdef"), early); len(kinds) != 1 || kinds[0].Name != traceid.KindRandom {
		t.Errorf("with a clock in 1970: %v", kinds)
	}
}

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

func TestNotBefore(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		id   trace.TraceID
		want time.Time
	}{
		{"ours", parse(t, "16c6e867fa0000050123456789abcdef"), noon.Add(-time.Hour)},
		{"UUID v7", parse(t, "017f22e279b07cc398c4dc0c0c07398f"), time.Date(2022, 2, 22, 18, 22, 22, 0, time.UTC)},
		{"64 bits", parse(t, "000000000000000080f198ee56343ba8"), time.Time{}},
		{"none", trace.TraceID{}, time.Time{}},
		{"random", parse(t, "fbf92f3577b3cda6a3ce929d0e0e4736"), time.Time{}},
		{"a clock far ahead", traceid.Min(now.Add(2 * time.Hour)), time.Time{}},
	} {
		if got := traceid.NotBefore(c.id, time.Hour); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := traceid.NotBefore(traceid.Min(noon), -time.Hour); !got.Equal(noon) {
		t.Errorf("a negative slack gives %s, want the ID's time", got)
	}
}
