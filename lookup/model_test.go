package lookup

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/traceid"
)

// The model: a fleet whose machines have clocks that are wrong by up to maxSkew sends the spans of
// its traces to a server in Tempo's manner. The server cuts what arrives into blocks; a block's
// times are those of its spans, clamped to two minutes around their arrival; a lookup with times
// reads the blocks that overlap them. Times are Unix milliseconds.
const (
	second   = 1000
	hour     = 3600 * second
	days     = 7 * 24 * hour
	maxSkew  = 20 * 60 * second
	clamp    = 2 * 60 * second
	blockLen = hour / 6
)

type tempoModel struct {
	blocks []struct{ start, end int64 }
	spans  map[trace.TraceID][]int // the block of each
	kinds  map[trace.TraceID]string
}

// RoundTrip answers like Tempo: v1 with 404 if it finds nothing, v2 with an empty trace.
func (m *tempoModel) RoundTrip(r *http.Request) (*http.Response, error) {
	_, id := Tempo.lookup(r.URL.Path)
	start, end := seconds(r, "start"), seconds(r, "end")
	found := 0
	for _, block := range m.spans[id] {
		if b := m.blocks[block]; start == 0 || end == 0 || b.start < end && b.end > start {
			found++
		}
	}
	status, body := http.StatusOK, `{"trace":{},"metrics":{}}`
	if found > 0 {
		body = fmt.Sprintf(`{"trace":{"spans":%d}}%*s`, found, emptyLen, "")
	} else if !strings.Contains(r.URL.Path, "/v2/") {
		status, body = http.StatusNotFound, "not found"
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// seconds returns the time in a parameter, or 0 if there is none.
func seconds(r *http.Request, name string) int64 {
	n, _ := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
	return n * second
}

// newModel fills a model with traces: short ones and some of up to two days, with spans that
// arrive hours late, IDs of ours, random ones, UUIDv7, X-Ray's, 64 bits, some of them by a clock
// that is six hours ahead, and, if adversarial, IDs with a time of the attacker's choice near
// their own trace.
func newModel(traces int, adversarial bool) *tempoModel {
	rng := rand.New(rand.NewPCG(1, 2))
	begin := time.Now().UnixMilli() - days
	m := &tempoModel{slices.Repeat([]struct{ start, end int64 }{{math.MaxInt64, math.MinInt64}}, days/blockLen+1),
		make(map[trace.TraceID][]int), make(map[trace.TraceID]string)}
	skew := func() int64 { return rng.Int64N(2*maxSkew) - maxSkew }
	for range traces {
		began := begin + rng.Int64N(days)
		long := int64(rng.ExpFloat64() * second)
		if rng.IntN(20) == 0 {
			long = rng.Int64N(48 * hour)
		}
		id, kind := modelID(rng, began+skew(), began, long, adversarial)
		spans := 1 + rng.IntN(8)
		ahead := long < hour && rng.IntN(50) == 0
		if ahead { // beyond the slack: nothing is found with the bound
			id, kind = modelID(rng, began+6*hour, began, long, false)
			spans = 1 // with more, the block of one may reach past the bound
		}
		m.kinds[id] = kind
		for range spans {
			at := began + rng.Int64N(long+1)
			arrival := at + rng.Int64N(10*second)
			if rng.IntN(50) == 0 && !ahead { // a queue that was stuck
				arrival += rng.Int64N(6 * hour)
			}
			if arrival < begin+days {
				n, shown := int((arrival-begin)/blockLen), min(max(at+skew(), arrival-clamp), arrival+clamp)
				b := &m.blocks[n]
				b.start, b.end = min(b.start, shown), max(b.end, shown)
				m.spans[id] = append(m.spans[id], n)
			}
		}
	}
	return m
}

// modelID returns an ID for a trace whose root's clock shows at.
func modelID(rng *rand.Rand, at, began, long int64, adversarial bool) (id trace.TraceID, kind string) {
	high := rng.Uint64()
	binary.BigEndian.PutUint64(id[8:], rng.Uint64()|1)
	switch n := rng.IntN(20); n {
	case 0:
		kind = "random"
	case 1:
		kind, high = "64 bits", 0
	case 2:
		kind, high = "UUIDv7", uint64(at)<<16|0x7000|high&0xfff
		id[8] = id[8]&0x3f | 0x80
	case 3:
		kind, high = "X-Ray", uint64(at/second)<<32|high>>32
	default:
		kind = "ours"
		if n == 4 && adversarial {
			kind, at = "adversarial", began+rng.Int64N(long+24*hour) // often after its own spans
		}
		high = uint64(at-layout.EpochMillis)<<layout.SequenceBits | high&traceid.MaxSequence
	}
	binary.BigEndian.PutUint64(id[:8], high)
	return id, kind
}

// wrong counts the traces for which a transport returns anything else than the server does.
func (m *tempoModel) wrong(t *testing.T, opts ...Option) map[string]int {
	t.Helper()
	tr, err := New(Tempo, append([]Option{WithTransport(m)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	wrong, turn := make(map[string]int), 0
	for id, kind := range m.kinds {
		path := [...]string{"/api/traces/", "/api/v2/traces/"}[turn%2]
		turn++
		var bodies [2]string
		for i, rt := range []http.RoundTripper{m, tr} {
			resp, err := rt.RoundTrip(httptest.NewRequest(http.MethodGet, path+id.String(), nil))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			bodies[i] = string(body)
		}
		if bodies[0] != bodies[1] {
			wrong[kind]++
		}
	}
	return wrong
}

// TestModel: a lookup with a bound returns what one without it does.
func TestModel(t *testing.T) {
	model(t, 30_000, false, func(m *tempoModel) {
		if wrong := m.wrong(t); len(wrong) > 0 {
			t.Errorf("different answers: %v", wrong)
		}
	})
}

// A verifier takes away what an attacker can do: IDs with a time in the middle of their traces.
func TestModelAdversarial(t *testing.T) {
	model(t, 5_000, true, func(m *tempoModel) {
		if wrong := m.wrong(t); wrong["adversarial"] == 0 || len(wrong) != 1 {
			t.Errorf("without a verifier: %v; some of the adversarial ones must differ, and no others", wrong)
		}
		verify := func(id trace.TraceID) bool { return m.kinds[id] == "ours" }
		if wrong := m.wrong(t, WithVerifier(verify)); len(wrong) > 0 {
			t.Errorf("with a verifier: %v", wrong)
		}
	})
}

// TestModelCatches: the model notices each wrong variant that we know of.
func TestModelCatches(t *testing.T) {
	model(t, 5_000, false, func(m *tempoModel) {
		if len(m.wrong(t, WithSlack(0))) == 0 {
			t.Error("no slack: not noticed")
		}
		first := make(map[string]int64)
		for name, spoil := range map[string]func(path string, start int64) (from, to int64){
			"an upper bound": func(_ string, start int64) (int64, int64) { return start, start + 2*hour },
			"the bound of now": func(_ string, start int64) (int64, int64) {
				return min(start, 1) * (time.Now().UnixMilli() - 96*hour), never.UnixMilli()
			},
			"no second request": func(path string, start int64) (int64, int64) {
				first[path] = max(start, first[path])
				return first[path], never.UnixMilli()
			},
		} {
			wrong := m.wrong(t, WithTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
				from, to := spoil(r.URL.Path, seconds(r, "start"))
				r = r.Clone(r.Context())
				r.URL.RawQuery = fmt.Sprintf("start=%d&end=%d", from/second, to/second)
				return m.RoundTrip(r)
			})))
			if len(wrong) == 0 {
				t.Errorf("%s: not noticed", name)
			}
		}
	})
}

// model calls f with a model. The clock shows the same in every run: another one might meet a random ID
// with a time in the middle of its own trace.
func model(t *testing.T, traces int, adversarial bool, f func(*tempoModel)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)))
		f(newModel(traces, adversarial))
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
