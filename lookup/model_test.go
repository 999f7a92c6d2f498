package lookup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/traceid"
)

// The model: a fleet whose machines have clocks that are wrong by up to maxSkew sends the spans of
// its traces to a server in Tempo's manner. The server cuts what arrives into blocks; a block's
// times are those of its spans, clamped to two minutes around their arrival; blocks are compacted
// in pairs; a lookup with times reads the blocks that overlap them.
const (
	modelDays = 7
	maxSkew   = 20 * time.Minute
	clamp     = 2 * time.Minute
	blockLen  = 10 * time.Minute
)

type block struct{ start, end time.Time }

type tempoModel struct {
	begin  time.Time
	blocks []block
	merged []int                           // by number of a fresh block, its block after compaction
	spans  map[trace.TraceID]map[int][]int // by block, the numbers of a trace's spans
	kinds  map[trace.TraceID]string
}

// arrive stores a span.
func (m *tempoModel) arrive(id trace.TraceID, span int, recorded, arrival time.Time) {
	n := m.merged[int(arrival.Sub(m.begin)/blockLen)]
	at := recorded
	if at.Before(arrival.Add(-clamp)) {
		at = arrival.Add(-clamp)
	}
	if at.After(arrival.Add(clamp)) {
		at = arrival.Add(clamp)
	}
	b := &m.blocks[n]
	if b.start.IsZero() || at.Before(b.start) {
		b.start = at
	}
	if at.After(b.end) {
		b.end = at
	}
	if m.spans[id] == nil {
		m.spans[id] = make(map[int][]int)
	}
	m.spans[id][n] = append(m.spans[id][n], span)
}

// RoundTrip answers like Tempo: v1 with 404 if it finds nothing, v2 with an empty trace.
func (m *tempoModel) RoundTrip(r *http.Request) (*http.Response, error) {
	_, id := Tempo.lookup(r.URL.Path)
	q := r.URL.Query()
	start, end := seconds(q.Get("start")), seconds(q.Get("end"))
	var found []int
	for n, spans := range m.spans[id] {
		if b := m.blocks[n]; q.Has("start") && q.Has("end") && (!b.start.Before(end) || !b.end.After(start)) {
			continue
		}
		found = append(found, spans...)
	}
	slices.Sort(found)
	status, body := http.StatusOK, `{"trace":{},"metrics":{}}`
	if len(found) > 0 {
		body = fmt.Sprintf(`{"trace":{"spans":%v,"spanId":""}}`, found)
	} else if !strings.Contains(r.URL.Path, "/v2/") {
		status, body = http.StatusNotFound, "not found"
	}
	return &http.Response{
		StatusCode: status, ContentLength: int64(len(body)), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r,
	}, nil
}

func seconds(text string) time.Time {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Unix(n, 0)
}

// newModel fills a model with traces: short ones and some of up to two days, with spans that
// arrive hours late, IDs of ours, random ones, UUIDv7, X-Ray's, 64 bits, some of them by a clock
// that is six hours ahead, and, if adversarial, IDs with a time of the attacker's choice near
// their own trace.
func newModel(traces int, adversarial bool) *tempoModel {
	rng := rand.New(rand.NewPCG(1, 2))
	m := &tempoModel{
		begin: time.Now().Add(-modelDays * 24 * time.Hour).Truncate(time.Second),
		spans: make(map[trace.TraceID]map[int][]int), kinds: make(map[trace.TraceID]string),
	}
	fresh := modelDays*24*int(time.Hour/blockLen) + 1
	m.merged, m.blocks = make([]int, fresh), make([]block, fresh)
	for n := range fresh {
		m.merged[n] = n
		if rng.IntN(2) == 0 { // compaction joins it with one of the hours before
			m.merged[n] = m.merged[max(0, n-rng.IntN(12))]
		}
	}
	last := m.begin.Add(modelDays*24*time.Hour - time.Minute)
	skew := func() time.Duration { return time.Duration(rng.Int64N(int64(2*maxSkew))) - maxSkew }
	for range traces {
		began := m.begin.Add(time.Duration(rng.Int64N(int64(last.Sub(m.begin)))))
		long := time.Duration(rng.ExpFloat64() * float64(time.Second))
		if rng.IntN(20) == 0 {
			long = time.Duration(rng.Int64N(int64(48 * time.Hour)))
		}
		id, kind := modelID(rng, began.Add(skew()), began, long, adversarial)
		ahead := long < time.Hour && rng.IntN(50) == 0
		if ahead { // beyond the slack: nothing is found with the bound
			id, kind = modelID(rng, began.Add(6*time.Hour), began, long, false)
		}
		m.kinds[id] = kind
		spans := 1 + rng.IntN(8)
		if ahead {
			spans = 1 // with more, the block of one may reach past the bound
		}
		for span := range spans {
			at := began.Add(time.Duration(rng.Int64N(int64(long) + 1)))
			arrival := at.Add(time.Duration(rng.Int64N(int64(10 * time.Second))))
			if rng.IntN(50) == 0 && !ahead { // a queue that was stuck
				arrival = arrival.Add(time.Duration(rng.Int64N(int64(6 * time.Hour))))
			}
			if arrival.Before(last) {
				m.arrive(id, span, at.Add(skew()), arrival)
			}
		}
	}
	return m
}

// modelID returns an ID for a trace whose root's clock shows at.
func modelID(rng *rand.Rand, at, began time.Time, long time.Duration, adversarial bool) (id trace.TraceID, kind string) {
	binary.BigEndian.PutUint64(id[:8], rng.Uint64())
	binary.BigEndian.PutUint64(id[8:], rng.Uint64()|1)
	switch rng.IntN(20) {
	case 0:
		return id, "random"
	case 1:
		copy(id[:8], make([]byte, 8))
		return id, "64 bits"
	case 2:
		binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|0x7000|rng.Uint64N(0x1000))
		id[8] = id[8]&0x3f | 0x80
		return id, "UUIDv7"
	case 3:
		binary.BigEndian.PutUint32(id[:4], uint32(at.Unix()))
		return id, "X-Ray"
	case 4:
		if adversarial {
			at = began.Add(time.Duration(rng.Int64N(int64(long) + int64(24*time.Hour)))) // often after its own spans
			ms, _ := traceid.Millis(at)
			binary.BigEndian.PutUint64(id[:8], ms<<traceid.SequenceBits|rng.Uint64N(traceid.MaxSequence))
			return id, "adversarial"
		}
	}
	ms, _ := traceid.Millis(at)
	binary.BigEndian.PutUint64(id[:8], ms<<traceid.SequenceBits|rng.Uint64N(traceid.MaxSequence))
	return id, "ours"
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
		var bodies [2][]byte
		for i, rt := range []http.RoundTripper{m, tr} {
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if bodies[i], err = io.ReadAll(resp.Body); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(bodies[0], bodies[1]) {
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
	m := newModel(traces, false)
	if wrong := m.wrong(t, modelTransport(t, m)); len(wrong) > 0 {
		t.Errorf("of %d traces differ: %v", traces, wrong)
	}
}

// A verifier takes away what an attacker can do: IDs with a time in the middle of their traces.
func TestModelAdversarial(t *testing.T) {
	m := newModel(5_000, true)
	tr := modelTransport(t, m)
	if wrong := m.wrong(t, tr); wrong["adversarial"] == 0 || len(wrong) != 1 {
		t.Errorf("without a verifier: %v; some of the adversarial ones must differ, and no others", wrong)
	}
	tr.verify = func(id trace.TraceID) bool { return m.kinds[id] == "ours" }
	if wrong := m.wrong(t, tr); len(wrong) > 0 {
		t.Errorf("with a verifier: %v", wrong)
	}
}

// TestModelCatches: the model notices each wrong variant that we know of.
func TestModelCatches(t *testing.T) {
	m := newModel(5_000, false)
	for name, spoil := range map[string]func(*Transport){
		"no slack": func(tr *Transport) { tr.slack = 0 },
		"an upper bound": func(tr *Transport) {
			tr.next = roundTrip(func(r *http.Request) (*http.Response, error) {
				q := r.URL.Query()
				if q.Has("start") {
					q.Set("end", strconv.FormatInt(seconds(q.Get("start")).Add(2*time.Hour).Unix(), 10))
					r = r.Clone(r.Context())
					r.URL.RawQuery = q.Encode()
				}
				return m.RoundTrip(r)
			})
		},
		"no second request":     func(tr *Transport) { tr.missed = func(*http.Response) bool { return false } },
		"only 404 is not found": func(tr *Transport) { tr.missed = func(r *http.Response) bool { return r.StatusCode == 404 } },
		"the bound of now": func(tr *Transport) {
			tr.notBefore = func(trace.TraceID, time.Duration) time.Time { return time.Now().Add(-96 * time.Hour) }
		},
	} {
		tr := modelTransport(t, m)
		spoil(tr)
		if wrong := m.wrong(t, tr); len(wrong) == 0 {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func modelTransport(t *testing.T, m *tempoModel) *Transport {
	t.Helper()
	tr, err := New(Tempo, WithTransport(m))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
