package clickhouse_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/traceid"
)

const null = "ᴺᵁᴸᴸ"

// store creates the functions and fills a table with IDs.
func store[ID any](e *engine, ids []ID) {
	e.t.Helper()
	e.run(clickhouse.Schema{Table: "functions"}.Statements())
	var values strings.Builder
	for i, id := range ids {
		fmt.Fprintf(&values, "(%d,unhex('%x'))", i, fmt.Sprint(id))
	}
	e.exec("CREATE TABLE ids (n UInt32, id String, TraceId ALIAS id) ENGINE = MergeTree ORDER BY n")
	e.exec("INSERT INTO ids VALUES " + values.String())
}

func milli(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") }

func edges() []trace.TraceID {
	var ids []trace.TraceID
	for _, high := range []uint64{0, 1, 1<<23 - 1, 1 << 23, 1<<63 - 1, 1 << 63, 1<<64 - 1,
		1<<64 - 1<<23, 0x18f06868b6000000} {
		for _, low := range []uint64{0, 1, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
			ids = append(ids, id(high, low))
		}
	}
	return ids
}

func id(high, low uint64) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

func random(n int) []trace.TraceID {
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]trace.TraceID, n)
	for i := range ids {
		ids[i] = id(r.Uint64(), r.Uint64())
	}
	return ids
}

// TestFunctionsAgreeWithGo compares each function with its counterpart in Go, value by value, and
// checks the documented condition of sampling.
func TestFunctionsAgreeWithGo(t *testing.T) {
	e := newEngine(t)
	ids := append(edges(), random(50_000)...)
	store(e, ids)
	now := time.Date(2026, 10, 15, 11, 0, 0, 123456789, time.UTC)
	const age, skew = 40 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour
	verifier := traceid.NewVerifier(nil, traceid.WithPlausible(age), traceid.WithSkew(skew),
		traceid.WithClock(func() time.Time { return now }))
	got := e.exec(fmt.Sprintf(`SELECT traceIDTime(id), traceIDSeq(id), traceIDLow(id),
		traceIDMin(traceIDTime(id)), traceIDMax(traceIDTime(id)),
		traceIDIsOurs(id, toDateTime64('%s', 9, 'UTC'), toIntervalSecond(%d), %d),
		traceIDAt(traceIDTime(id), traceIDSeq(id), traceIDLow(id))
		FROM ids ORDER BY n`, now.Format("2006-01-02 15:04:05.000000000"), int(age.Seconds()),
		int(skew.Seconds())))
	if len(got) != len(ids) {
		t.Fatalf("%d rows of %d", len(got), len(ids))
	}
	for i, id := range ids {
		ours := "0"
		if verifier.Plausible(id) {
			ours = "1"
		}
		same := id
		if binary.BigEndian.Uint64(id[:8]) == 0 {
			same[7] = 1 // a zero clear half would say that the ID is not ours
		}
		at := traceid.Time(id)
		if at.IsZero() {
			at = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) // SQL has a time for 64-bit IDs, too
		}
		want := []string{milli(at), strconv.Itoa(int(traceid.Inspect(nil, id).Sequence)),
			strconv.FormatUint(binary.BigEndian.Uint64(id[8:]), 10),
			traceid.Min(at).String(), traceid.Max(at).String(), ours, same.String()}
		for column, value := range want {
			if got[i][column] != value {
				t.Fatalf("%s: column %d is %s, in Go %s", id, column, got[i][column], value)
			}
		}
	}
	// The documented condition keeps the traces that the sampler keeps.
	for _, ratio := range []float64{0, 1e-18, 0.001, 0.1, 0.25, 1. / 3, 0.5, 0.999999} {
		sampler := sdktrace.TraceIDRatioBased(ratio)
		var kept []string
		for _, id := range ids {
			if sampler.ShouldSample(
				sdktrace.SamplingParameters{ParentContext: t.Context(),
					TraceID: id}).Decision == sdktrace.RecordAndSample {
				kept = append(kept, id.String())
			}
		}
		condition := fmt.Sprintf(
			"bitShiftRight(traceIDLow(TraceId), 1) < toUInt64(%g * 9223372036854775808)", ratio)
		if got := e.column("SELECT TraceId FROM ids WHERE " + condition +
			" ORDER BY n"); !slices.Equal(got, kept) {
			t.Errorf("ratio %v: %d traces, the sampler keeps %d, or others", ratio, len(got),
				len(kept))
		}
	}
}

func TestBoundsAgreeWithGo(t *testing.T) {
	e := newEngine(t)
	e.run(clickhouse.Schema{Table: "functions"}.Statements())
	times := []time.Time{
		time.Date(1900, 1, 2, 0, 0, 0, 0, time.UTC), time.Unix(-1, 999_999_999), time.Unix(0, 0),
		time.UnixMilli(layout.EpochMillis).Add(-1), time.UnixMilli(layout.EpochMillis),
		time.UnixMilli(layout.EpochMillis).Add(time.Millisecond - 1),
		time.UnixMilli(layout.EpochMillis + 1),
		time.Date(2026, 10, 15, 10, 0, 0, 999_999_999, time.UTC),
		time.UnixMilli(layout.EpochMillis + 1<<41 - 1), time.UnixMilli(layout.EpochMillis + 1<<41),
		time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, at := range times {
		literal := "toDateTime64('" + at.UTC().Format("2006-01-02 15:04:05.000000000") +
			"', 9, 'UTC')"
		e.is(traceid.Min(at).String(), "SELECT traceIDMin("+literal+")")
		e.is(traceid.Max(at).String(), "SELECT traceIDMax("+literal+")")
	}
	ten := time.Date(2026, 10, 15, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct{ query, want string }{
		{"traceIDMin(toDateTime('2026-10-15 19:00:00', 'Asia/Tokyo'))", traceid.Min(ten).String()},
		{"traceIDMin('2026-10-15 10:00:00')", traceid.Min(ten).String()},
		{"traceIDMin(NULL)", null},
		{"traceIDMax(CAST(NULL, 'Nullable(DateTime)'))", null},
		{"traceIDAt(toDateTime('2019-12-31 23:59:59', 'UTC'), 0, 1)", null},
		{"traceIDAt(toDateTime64('2090-01-01 00:00:00', 3, 'UTC'), 0, 1)", null},
		{"traceIDAt(NULL, 0, 1)", null},
		{"traceIDAt(toDateTime64('2020-01-01 00:00:00', 3, 'UTC'), 0, 1)",
			"00000000000000010000000000000001"},
		{"traceIDAt(toDateTime64('2020-01-01 00:00:00.001', 3, 'UTC'), 8388608 + 5, 255)",
			"000000000080000500000000000000ff"},
	} {
		e.is(c.want, "SELECT "+c.query)
	}
}

// TestFunctionsOnOtherTexts: text that is not a trace ID gives NULL, even in a
// scan.
func TestFunctionsOnOtherTexts(t *testing.T) {
	e := newEngine(t)
	ours := traceid.Min(time.Date(2026, 10, 15, 10, 0, 0, 0, time.UTC)).String()
	store(e, []string{"", "0", ours[:31], ours + "0", ours[:16], strings.ToUpper(ours),
		"g" + ours[1:], ours[:31] + " ", ours + "\n", "\x00" + ours[1:],
		strings.Repeat("é", 16), "0x" + ours[2:], ours})
	for _, row := range e.exec("SELECT hex(id), traceIDTime(id), traceIDSeq(id), traceIDLow(id), " +
		"traceIDIsOurs(id, now(), toIntervalYear(40), 0) FROM ids WHERE id != '" + ours + "'") {
		if !slices.Equal(row[1:], []string{null, null, null, "0"}) {
			t.Errorf("%s: %v", row[0], row[1:])
		}
	}
	e.is("1", "SELECT count() FROM ids WHERE traceIDTime(id) > '2020-01-02' OR traceIDSeq(id) >= 0")
	for _, constant := range []string{"'" + strings.ToUpper(ours) + "'", "''", "NULL"} {
		e.is(null, "SELECT traceIDTime("+constant+")")
	}
	// A 64-bit ID, padded as B3 pads it, is valid but not ours.
	e.is("2020-01-01 00:00:00.000 0", "SELECT traceIDTime(x) || ' ' || traceIDIsOurs(x, "+
		"toDateTime('2020-01-01 00:00:01', 'UTC'), 60, 60) FROM (SELECT "+
		"'000000000000000000000000000000ff' AS x)")
}
