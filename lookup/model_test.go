package lookup

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

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

type block struct{ start, end int64 }

type stored struct{ block, number int }

type tempoModel struct {
	begin  int64
	blocks []block
	spans  map[trace.TraceID][]stored
	kinds  map[trace.TraceID]string
}

// arrive stores a span.
func (m *tempoModel) arrive(id trace.TraceID, number int, recorded, arrival int64) {
	n := int((arrival - m.begin) / blockLen)
	at := min(max(recorded, arrival-clamp), arrival+clamp)
	m.blocks[n] = block{min(m.blocks[n].start, at), max(m.blocks[n].end, at)}
	m.spans[id] = append(m.spans[id], stored{n, number})
}

// RoundTrip answers like Tempo: v1 with 404 if it finds nothing, v2 with an empty trace.
func (m *tempoModel) RoundTrip(r *http.Request) (*http.Response, error) {
	_, id := Tempo.lookup(r.URL.Path)
	start, end := seconds(r, "start"), seconds(r, "end")
	var found []int
	for _, span := range m.spans[id] {
		if b := m.blocks[span.block]; start == 0 || end == 0 || b.start < end && b.end > start {
			found = append(found, span.number)
		}
	}
	status, body := http.StatusOK, `{"trace":{},"metrics":{}}`
	if len(found) > 0 {
		body = fmt.Sprintf(`{"trace":{"spans":%v}}%*s`, found, emptyLen, "")
	} else if !strings.Contains(r.URL.Path, "/v2/") {
		status, body = http.StatusNotFound, "not found"
	}
	return &http.Response{
		StatusCode: status, ContentLength: int64(len(body)), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
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
	m := &tempoModel{
		begin:  time.Now().UnixMilli() - days,
		blocks: slices.Repeat([]block{{math.MaxInt64, math.MinInt64}}, days/blockLen+1),
		spans:  make(map[trace.TraceID][]stored), kinds: make(map[trace.TraceID]string),
	}
	skew := func() int64 { return rng.Int64N(2*maxSkew) - maxSkew }
	for range traces {
		began := m.begin + rng.Int64N(days)
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
		for number := range spans {
			at := began + rng.Int64N(long+1)
			arrival := at + rng.Int64N(10*second)
			if rng.IntN(50) == 0 && !ahead { // a queue that was stuck
				arrival += rng.Int64N(6 * hour)
			}
			if arrival < m.begin+days {
				m.arrive(id, number, at+skew(), arrival)
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
		high = uint64(at-traceid.EpochMillis)<<traceid.SequenceBits | high&traceid.MaxSequence
	}
	binary.BigEndian.PutUint64(id[:8], high)
	return id, kind
}

// wrong counts the traces for which tr returns anything else than the server does.
func (m *tempoModel) wrong(t *testing.T, tr *Transport) map[string]int {
	t.Helper()
	wrong, turn := make(map[string]int), 0
	for id, kind := range m.kinds {
		path := [...]string{"/api/traces/", "/api/v2/traces/"}[turn%2]
		turn++
		req, err := http.NewRequest(http.MethodGet, "http://tempo"+path+id.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var bodies [2]string
		for i, rt := range []http.RoundTripper{m, tr} {
			resp, err := rt.RoundTrip(req)
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
	traces := 30_000
	if testing.Short() {
		traces = 5_000
	}
	model(t, traces, false, func(m *tempoModel, tr *Transport) {
		if wrong := m.wrong(t, tr); len(wrong) > 0 {
			t.Errorf("of %d traces differ: %v", traces, wrong)
		}
	})
}

// A verifier takes away what an attacker can do: IDs with a time in the middle of their traces.
func TestModelAdversarial(t *testing.T) {
	model(t, 5_000, true, func(m *tempoModel, tr *Transport) {
		if wrong := m.wrong(t, tr); wrong["adversarial"] == 0 || len(wrong) != 1 {
			t.Errorf("without a verifier: %v; some of the adversarial ones must differ, and no others", wrong)
		}
		tr.verify = func(id trace.TraceID) bool { return m.kinds[id] == "ours" }
		if wrong := m.wrong(t, tr); len(wrong) > 0 {
			t.Errorf("with a verifier: %v", wrong)
		}
	})
}

// TestModelCatches: the model notices each wrong variant that we know of.
func TestModelCatches(t *testing.T) {
	for name, spoil := range map[string]func(*tempoModel, *Transport){
		"no slack": func(_ *tempoModel, tr *Transport) { tr.slack = 0 },
		"an upper bound": func(m *tempoModel, tr *Transport) {
			tr.next = roundTrip(func(r *http.Request) (*http.Response, error) {
				if start := seconds(r, "start"); start != 0 {
					r = r.Clone(r.Context())
					r.URL.RawQuery = fmt.Sprintf("start=%d&end=%d", start/second, (start+2*hour)/second)
				}
				return m.RoundTrip(r)
			})
		},
		"no second request": func(_ *tempoModel, tr *Transport) {
			tr.missed = func(*http.Response) bool { return false }
		},
		"only 404 is not found": func(_ *tempoModel, tr *Transport) {
			tr.missed = func(r *http.Response) bool { return r.StatusCode == 404 }
		},
		"the bound of now": func(_ *tempoModel, tr *Transport) {
			tr.notBefore = func(trace.TraceID, time.Duration) time.Time { return time.Now().Add(-96 * time.Hour) }
		},
	} {
		model(t, 5_000, false, func(m *tempoModel, tr *Transport) {
			spoil(m, tr)
			if wrong := m.wrong(t, tr); len(wrong) == 0 {
				t.Errorf("%s: not noticed", name)
			}
		})
	}
}

// model calls f with a model and a transport to it. The clock shows the same in every run: another one
// might meet a random ID with a time in the middle of its own trace.
func model(t *testing.T, traces int, adversarial bool, f func(*tempoModel, *Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)))
		m := newModel(traces, adversarial)
		tr, err := New(Tempo, WithTransport(m))
		if err != nil {
			t.Fatal(err)
		}
		f(m, tr)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
