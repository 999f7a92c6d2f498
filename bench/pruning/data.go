package pruning

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/traceflake/traceflake/idgen"
)

// perTrace is how many spans a trace has.
const perTrace = 8

// day is the time over which the traces are spread, and its begin.
const day = 24 * time.Hour

var midnight = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// kind is a kind of trace ID. ordered is set if IDs begin with the time.
type kind struct {
	name    string
	ordered bool
	at      func(time.Time) ([16]byte, error)
}

func kinds() []kind {
	random := rand.New(rand.NewPCG(1, 2))
	fill := func(b []byte) {
		for i := 0; i < len(b); i += 8 {
			binary.BigEndian.PutUint64(b[i:], random.Uint64())
		}
	}
	g := idgen.New()
	return []kind{
		{"random (UUIDv4)", false, func(time.Time) (id [16]byte, _ error) {
			fill(id[:])
			id[6], id[8] = 0x40|id[6]&0x0f, 0x80|id[8]&0x3f
			return id, nil
		}},
		{"UUIDv7", true, func(t time.Time) (id [16]byte, _ error) {
			fill(id[:])
			low := binary.BigEndian.Uint64(id[:]) & 0xffff
			binary.BigEndian.PutUint64(id[:], uint64(t.UnixMilli())<<16|low)
			id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
			return id, nil
		}},
		{"traceflake", true, func(t time.Time) ([16]byte, error) {
			id, err := g.NewTraceIDAt(t)
			return id, err
		}},
	}
}

// span holds the trace of a span and when the span ended, which is when it arrives.
type span struct {
	trace int
	ms    int64
}

// arrival returns the spans in the order in which they arrive: spans of overlapping traces are
// mixed.
func arrival(traces int) []span {
	random := rand.New(rand.NewPCG(3, 4))
	spans := make([]span, 0, traces*perTrace)
	for i := range traces {
		for range perTrace {
			took := time.Duration(random.ExpFloat64() * float64(500*time.Millisecond))
			spans = append(spans, span{i, begin(i, traces).Add(took).UnixMilli()})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.ms - b.ms) })
	return spans
}

// begin returns when a trace begins.
func begin(i, traces int) time.Time {
	return midnight.Add(time.Duration(float64(day) * float64(i) / float64(traces)))
}

// ids returns the IDs of the traces.
func (k kind) ids(traces int) ([][16]byte, error) {
	ids := make([][16]byte, traces)
	for i := range ids {
		var err error
		if ids[i], err = k.at(begin(i, traces)); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// writeCSV writes the spans with these IDs: trace_id, span_id, ms, service, name, duration.
func writeCSV(path string, spans []span, ids [][16]byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(5, 6))
	w := bufio.NewWriterSize(file, 1<<20)
	for _, s := range spans {
		name := random.IntN(200)
		_, err = fmt.Fprintf(w, "%s,%d,%d,service-%d,operation-%d,%d\n",
			hex.EncodeToString(ids[s.trace][:]), random.Int64(), s.ms, name%20, name, random.Int64N(1_000_000))
		if err != nil {
			break
		}
	}
	return errors.Join(err, w.Flush(), file.Close())
}

// window is five minutes; its traces are those that begin in it.
const window = 5 * time.Minute

// query selects one trace, or the traces of a window.
type query struct {
	Column string `json:"column"` // trace_id or ms
	Low    string `json:"low"`
	High   string `json:"high"`
}

// questions returns n queries for one trace each, and n for windows. Windows use the time column
// if the IDs have no time.
func (k kind) questions(ids [][16]byte, n int) (one, windows []query) {
	random := rand.New(rand.NewPCG(7, 8))
	long := int(float64(len(ids)) * float64(window) / float64(day))
	for range n {
		i := random.IntN(len(ids) - long)
		id := hex.EncodeToString(ids[i][:])
		one = append(one, query{"trace_id", id, id})
		if k.ordered {
			windows = append(windows, query{"trace_id", id, hex.EncodeToString(ids[i+long-1][:])})
			continue
		}
		from := begin(i, len(ids))
		windows = append(windows, query{"ms", fmt.Sprint(from.UnixMilli()), fmt.Sprint(from.Add(window).UnixMilli())})
	}
	return one, windows
}
