package bench

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/integration/servers"
)

var spans = flag.Int("spans", 400_000, "spans in each table of BenchmarkBlocks")

// asked is the number of queries of each kind; figures are medians.
const asked = 25

// BenchmarkBlocks counts what the order of IDs saves if only the minimum and maximum of a block
// are known: PostgreSQL's BRIN index keeps them for each range of pages. It is small, and useful
// only if adjacent rows have similar values. The same spans are stored in the order in which they
// arrive, and queries for one trace, and for the traces of five minutes, report what they read. With random IDs, five minutes are a range of the
// time column. The time has no meaning: run it with -benchtime 1x.
func BenchmarkBlocks(b *testing.B) {
	conn := servers.PostgresForTest(b).Connect(b)
	for _, k := range kinds() {
		b.Run("id="+k.name, func(b *testing.B) {
			for range b.N {
				for unit, value := range k.costs(b, conn, *spans) {
					b.ReportMetric(value, unit)
				}
			}
		})
	}
}

func TestOrderSavesBlocks(t *testing.T) {
	conn := servers.PostgresForTest(t).Connect(t)
	for _, k := range kinds() {
		c := k.costs(t, conn, 160_000)
		if all, one := c["pages"], c["trace-pages"]; k.ordered != (one < all/4) {
			t.Errorf("%s: one trace reads %g of %g pages", k.name, one, all)
		}
	}
}

// costs stores spans with one kind of ID in a table with BRIN indexes, and returns what the queries read.
func (k kind) costs(tb testing.TB, conn *pgx.Conn, spans int) map[string]float64 {
	tb.Helper()
	order := arrival(spans / perTrace)
	ids, err := k.ids(spans / perTrace)
	if err != nil {
		tb.Fatal(err)
	}
	execute(tb, conn, "DROP TABLE IF EXISTS spans", `CREATE UNLOGGED TABLE spans
		(trace_id uuid, span_id bigint, ms bigint, service text, name text, duration bigint)`)
	random := rand.New(rand.NewPCG(5, 6))
	if _, err := conn.CopyFrom(tb.Context(), pgx.Identifier{"spans"}, []string{"trace_id", "span_id", "ms", "service", "name", "duration"},
		pgx.CopyFromSlice(len(order), func(i int) ([]any, error) {
			name := random.IntN(200)
			return []any{ids[order[i].trace], random.Int64(), order[i].ms, fmt.Sprint("service-", name%20), fmt.Sprint("operation-", name), random.Int64N(1_000_000)}, nil
		})); err != nil {
		tb.Fatal(err)
	}
	execute(tb, conn, "CREATE INDEX by_id ON spans USING brin (trace_id)", "CREATE INDEX by_time ON spans USING brin (ms)",
		"SET max_parallel_workers_per_gather = 0", "VACUUM ANALYZE spans")
	one, windows := k.questions(ids, asked)
	costs := map[string]float64{"trace-pages": pages(tb, conn, one), "window-pages": pages(tb, conn, windows)}
	execute(tb, conn, "CREATE INDEX tree ON spans (trace_id)")
	var all, index, tree float64
	scan(tb, conn, `SELECT pg_relation_size('spans') / current_setting('block_size')::int, pg_relation_size('by_id'),
		pg_relation_size('tree')`, nil, &all, &index, &tree)
	costs["pages"], costs["brin-KiB"], costs["btree-KiB"] = all, index/1024, tree/1024
	return costs
}

// pages returns the median number of pages that the queries read.
func pages(tb testing.TB, conn *pgx.Conn, queries []query) float64 {
	tb.Helper()
	var all []float64
	for _, q := range queries {
		var plan []struct {
			Plan struct {
				Hit  float64 `json:"Shared Hit Blocks"`
				Read float64 `json:"Shared Read Blocks"`
			}
		}
		scan(tb, conn, fmt.Sprintf("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*), sum(duration) FROM spans WHERE %s BETWEEN '%s' AND '%s'",
			q.Column, q.Low, q.High), nil, &plan)
		all = append(all, plan[0].Plan.Hit+plan[0].Plan.Read)
	}
	return median(all)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

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
	random := rand.NewChaCha8([32]byte{1})
	g := idgen.New()
	return []kind{
		{"uuidv4", false, func(time.Time) ([16]byte, error) { return uuid.NewRandomFromReader(random) }},
		{"uuidv7", true, func(t time.Time) ([16]byte, error) {
			id, err := uuid.NewV7FromReader(random)
			low := binary.BigEndian.Uint64(id[:]) & 0xffff
			binary.BigEndian.PutUint64(id[:], uint64(t.UnixMilli())<<16|low) // its own is now
			return id, err
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

// window is five minutes; its traces are those that begin in it.
const window = 5 * time.Minute

// query selects one trace, or the traces of a window.
type query struct {
	Column    string // trace_id or ms
	Low, High string
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
