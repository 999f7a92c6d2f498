package clickhouse_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/clickhouse"
	"github.com/traceflake/traceflake/traceid"
)

const null = "ᴺᵁᴸᴸ"

func random(n int) []trace.TraceID {
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]trace.TraceID, n)
	for i := range ids {
		binary.BigEndian.PutUint64(ids[i][:8], r.Uint64())
		binary.BigEndian.PutUint64(ids[i][8:], r.Uint64())
	}
	return ids
}

// TestFunctionVectors: the functions return the known answers of testdata/format.json, and NULL for
// text that is not a trace ID.
func TestFunctionVectors(t *testing.T) {
	e := newEngine(t)
	e.run(clickhouse.Schema{Table: "functions"}.Statements())
	vectors := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(
		read("../../testdata/format.json"))
	const at = "fromUnixTimestamp64Milli(v.unix_ms, 'UTC')"
	const now = "toDateTime64('2026-01-01 00:00:00', 3, 'UTC'), toIntervalYear(40), 0"
	for _, c := range []struct{ part, as, holds string }{
		{"ids", "Tuple(unix_ms Int64, sequence UInt32, low String, id String)", "(" +
			"traceIDTime(v.id), traceIDSeq(v.id), leftPad(lower(hex(traceIDLow(v.id))), 16, '0')," +
			"traceIDAt(" + at + ", v.sequence + 8388608, traceIDLow(v.id))) = (" + at +
			", v.sequence, v.low, v.id)"},
		{"no_id", "Tuple(unix_ms Int64, wrong String)",
			"v.wrong != 'time' OR traceIDAt(" + at + ", 1, 1) IS NULL"},
		{"read", "Tuple(unix_ms Nullable(Int64), id String)",
			"toUnixTimestamp64Milli(traceIDTime(v.id)) IS NOT DISTINCT FROM v.unix_ms"},
		{"bounds", "Tuple(unix_ms Int64, min String, max String)",
			"(traceIDMin(" + at + "), traceIDMax(" + at + ")) = (v.min, v.max)"},
		{"malformed", "String", "traceIDTime(v) IS NULL AND NOT traceIDIsOurs(v, " + now +
			") AND (v = repeat('0', 32) OR coalesce(traceIDSeq(v), traceIDLow(v)) IS NULL)"},
	} {
		e.exec("CREATE OR REPLACE TABLE vectors ENGINE = Memory AS SELECT arrayJoin(JSONExtract('" +
			vectors + "', '" + c.part + "', 'Array(" + c.as + ")')) AS v")
		e.is("1", "SELECT count() > 0 FROM vectors")
		wrong := e.exec("SELECT v FROM vectors WHERE NOT ifNull(" + c.holds + ", 0)")
		if len(wrong) > 0 {
			t.Errorf("%s: %q", c.part, wrong)
		}
	}
	ten := time.Date(2026, 10, 15, 10, 0, 0, 0, time.UTC)
	for query, want := range map[string]string{
		"traceIDMin(toDateTime('2026-10-15 19:00:00', 'Asia/Tokyo'))": traceid.Min(ten).String(),
		"traceIDMin('2026-10-15 10:00:00')":                           traceid.Min(ten).String(),
		"traceIDMax(toDateTime64('2026-10-15 10:00:00.000999999', 9, 'UTC'))": traceid.Max(
			ten).String(),
		"traceIDMin(toDateTime64('1900-01-02 00:00:00', 9, 'UTC'))": traceid.Min(
			time.Time{}).String(),
		"traceIDMin(NULL)": null,
		"traceIDMax(CAST(NULL, 'Nullable(DateTime)'))": null,
		"traceIDAt(NULL, 0, 1)":                        null,
		"traceIDAt(toDateTime('2020-01-01 00:00:00', 'UTC'), 0, 1)": "0000000000000001" +
			"0000000000000001",
		"traceIDTime('')":   null,
		"traceIDTime(NULL)": null,
		"traceIDTime('" + strings.ToUpper(traceid.Max(ten).String()) + "')": null,
	} {
		e.is(want, "SELECT "+query)
	}
}

// TestFunctionsAgreeWithGo: traceIDIsOurs is 1 for the IDs that a Verifier finds plausible, to the
// millisecond, and the documented condition keeps the traces that the SDK's sampler keeps.
func TestFunctionsAgreeWithGo(t *testing.T) {
	e := newEngine(t)
	e.run(clickhouse.Schema{Table: "functions"}.Statements())
	now := time.Date(2026, 10, 15, 11, 0, 0, 123_000_000, time.UTC)
	const age, skew = 5 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour
	verifier := traceid.NewVerifier(nil, traceid.WithPlausible(age), traceid.WithSkew(skew),
		traceid.WithClock(func() time.Time { return now }))
	ids := append(random(5000), trace.TraceID{15: 1})
	for d := range 3 {
		for _, at := range []time.Time{now.Add(-age), now.Add(skew)} {
			ids = append(ids, traceid.Max(at.Add(time.Duration(d-1)*time.Millisecond)))
		}
	}
	agree := func(what, condition string, is func(trace.TraceID) bool) {
		t.Helper()
		var want []string
		for _, id := range ids {
			if is(id) {
				want = append(want, id.String())
			}
		}
		if got := e.column("SELECT TraceId FROM ids WHERE " + condition); !slices.Equal(sorted(got),
			sorted(want)) {
			t.Errorf("%s: %d IDs, in Go %d, or others", what, len(got), len(want))
		}
	}
	e.exec("CREATE TABLE ids ENGINE = Memory AS SELECT arrayJoin(extractAll('" +
		fmt.Sprint(ids) + "', '[0-9a-f]{32}')) AS TraceId")
	agree("ours", fmt.Sprintf("traceIDIsOurs(TraceId, toDateTime64('%s', 3, 'UTC'), "+
		"toIntervalSecond(%.0f), %.0f)", now.Format("2006-01-02 15:04:05.000"), age.Seconds(),
		skew.Seconds()), verifier.Plausible)
	for _, ratio := range []float64{0, 1e-18, 0.001, 0.1, 0.25, 1. / 3, 0.5, 0.999999} {
		sampler := sdktrace.TraceIDRatioBased(ratio)
		agree(fmt.Sprint("ratio ", ratio), fmt.Sprintf(
			"bitShiftRight(traceIDLow(TraceId), 1) < toUInt64(%g * 9223372036854775808)", ratio),
			func(id trace.TraceID) bool {
				return sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: t.Context(),
					TraceID: id}).Decision == sdktrace.RecordAndSample
			})
	}
}
