package postgres_test

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/internal/layout"
	"github.com/traceflake/traceflake/traceid"
)

const random = 1_000

// traceIDs returns the limits of the clear half, with and without a low half, and random IDs.
func traceIDs() (ids []trace.TraceID) {
	add := func(high, low uint64) {
		var id trace.TraceID
		binary.BigEndian.PutUint64(id[:8], high)
		binary.BigEndian.PutUint64(id[8:], low)
		ids = append(ids, id)
	}
	const top = 1<<64 - 1
	for _, high := range []uint64{0, 1, 1<<23 - 1, 1 << 23, 1<<62 - 1, 1 << 63, 1<<63 - 1,
		top - 1<<23, top} {
		add(high, 0)
		add(high, top)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range random {
		add(r.Uint64(), r.Uint64())
	}
	return ids
}

// The result for values that are not trace IDs is NULL, not an error.
func TestTraceIDTime(t *testing.T) {
	db := functions(t)
	const millis = "(1000 * extract(epoch FROM trace_id_time(%)))::bigint"
	ids := traceIDs()
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	for _, form := range []string{"v", "decode(v, 'hex')", "v::uuid"} {
		db.same(strings.ReplaceAll(millis, "%", form), texts,
			func(i int) string { return strconv.FormatInt(traceid.Time(ids[i]).UnixMilli(), 10) })
	}
	const id = "32d1f0a9c8000005a1b2c3d4e5f60718"
	// a literal without a type counts as text
	db.want("2014377950096", "SELECT "+strings.ReplaceAll(millis, "%", "'"+id+"'"))

	null := func(int) string { return "NULL" }
	db.same("trace_id_time(v)", []string{
		"", id[:31], id + "0", id + "\n", " " + id[1:], strings.ToUpper(id), id[:31] + "g",
		"0x" + id[2:], "32d1f0a9-c800-0005-a1b2-c3d4e5f60718", strings.Repeat("３", 32),
	}, null)
	db.same("trace_id_time(decode(v, 'hex'))", []string{"", id[:30], id + "32"},
		null)
}

// times returns the limits of PostgreSQL and of the clear half with their neighbours, and random
// times.
func times() (texts []string, values []time.Time) {
	add := func(t time.Time) {
		texts = append(texts, t.UTC().Format("2006-01-02 15:04:05.999999Z07:00"))
		values = append(values, t.UTC())
	}
	for _, edge := range []time.Time{
		time.UnixMilli(layout.EpochMillis), time.UnixMilli(layout.EpochMillis + 1<<40),
		time.UnixMilli(layout.EpochMillis + 1<<41),
		time.Unix(0, 0), time.Unix(946_684_800, 0), time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC),
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		for _, d := range []time.Duration{-time.Millisecond, -time.Microsecond, 0,
			time.Millisecond - time.Microsecond, time.Millisecond} {
			add(edge.Add(d))
		}
	}
	for name, t := range map[string]time.Time{
		"-infinity": {}, "infinity": time.Unix(1<<40, 0), "4714-11-24 00:00:00+00 BC": {},
		"294276-12-31 23:59:59.999999+00": time.Unix(1<<40, 0),
	} {
		texts, values = append(texts, name), append(values, t)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range random {
		add(time.UnixMicro((layout.EpochMillis - 1<<38) * 1000).Add(
			time.Duration(r.Int64N(1<<41+1<<39)) * time.Millisecond).
			Add(time.Duration(r.IntN(1000)) * time.Microsecond))
	}
	return texts, values
}

func TestTraceIDOfTime(t *testing.T) {
	db := functions(t)
	texts, values := times()
	db.exec("SET TimeZone = 'Europe/Berlin'")
	for name, bound := range map[string]func(time.Time) trace.TraceID{"min": traceid.Min,
		"max": traceid.Max} {
		db.same("trace_id_"+name+"(v::timestamptz)", texts,
			func(i int) string { return bound(values[i]).String() })
	}
	seen := make(map[string]bool)
	for i, text := range db.texts("SELECT trace_id_at(v::timestamptz) FROM unnest($1::text[]) "+
		"WITH ORDINALITY AS i (v, n) ORDER BY n", texts) {
		inside := !values[i].Before(time.UnixMilli(layout.EpochMillis)) &&
			values[i].Before(time.UnixMilli(layout.EpochMillis+1<<41))
		if inside != (text != "NULL") {
			t.Errorf("the ID of %s is %s", texts[i], text)
		}
		if !inside {
			continue
		}
		id, err := trace.TraceIDFromHex(text)
		if err != nil || id.String() != text ||
			!traceid.Time(id).Equal(values[i].Truncate(time.Millisecond)) ||
			traceid.Inspect(nil, id).Sequence == 0 || seen[text] {
			t.Fatalf("the ID of %s is %s, of %s, with the sequence %d, %v", texts[i], text,
				traceid.Time(id), traceid.Inspect(nil, id).Sequence, err)
		}
		seen[text] = true
	}
	// Volatile: a new ID for each row, even for a constant.
	db.want("1000",
		"SELECT count(DISTINCT trace_id_at('2026-11-21')) FROM generate_series(1, 1000)")
}
