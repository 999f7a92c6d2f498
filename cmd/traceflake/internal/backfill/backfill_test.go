package backfill

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

// counter returns a NewID: the time in the clear half, the number of the call in the low one.
func counter() func(time.Time, []byte) (trace.TraceID, error) {
	n := uint64(0)
	return func(t time.Time, _ []byte) (trace.TraceID, error) {
		if t.UnixMilli() < traceid.EpochMillis {
			return trace.TraceID{}, traceid.ErrBeforeEpoch
		}
		n++
		id := traceid.Min(t)
		binary.BigEndian.PutUint64(id[8:], n)
		return id, nil
	}
}

var hex32 = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

func showIDs(s string) string {
	return hex32.ReplaceAllStringFunc(s, func(s string) string {
		id, err := trace.TraceIDFromHex(s)
		if err != nil {
			return s
		}
		return "<" + traceid.Time(id).Format("2006-01-02T15:04:05.999") + " " + strconv.FormatUint(binary.BigEndian.Uint64(id[8:]), 10) + ">"
	})
}

// long is too long for memory: it is copied, and what follows is processed.
var long = strings.Repeat("x", MaxRecord+MaxRecord/2)

func TestNDJSON(t *testing.T) {
	for _, c := range []struct {
		name, in string
		o        Options
		want     string // with each ID as <TIME n>
		reports  []string
	}{
		{"one record", `{"ts":"2024-01-02T03:04:05Z","a":1}` + "\n", Options{},
			`{"ts":"2024-01-02T03:04:05Z","a":1,"trace_id":"<2024-01-02T03:04:05 1>"}` + "\n", nil},
		{"no line end", `{"ts":"2024-01-02T03:04:05Z"}`, Options{}, `{"ts":"2024-01-02T03:04:05Z","trace_id":"<2024-01-02T03:04:05 1>"}`, nil},
		{"every other byte stays", " \t{ \"ts\" : 1704164645.5 ,\t\"n\": 1.0e+05,\"u\":\"\\u00e9é\xff\",\"ts2\":{\"ts\":[]} , \"z\":[ 1 ,2 ] \t} \r\n\r\n\n", Options{},
			" \t{ \"ts\" : 1704164645.5 ,\t\"n\": 1.0e+05,\"u\":\"\\u00e9é\xff\",\"ts2\":{\"ts\":[]} , \"z\":[ 1 ,2 ],\"trace_id\":\"<2024-01-02T03:04:05.5 1>\" \t} \r\n\r\n\n", nil},
		{"mixed times", `{"ts":1704164645}` + "\n" + `{"ts":1704164645001}` + "\n" + `{"ts":"1704164645002000"}` + "\n" + `{"ts":1704164645003000000}` + "\n" + `{"ts":"2024-01-02 03:04:05.004"}`, Options{},
			`{"ts":1704164645,"trace_id":"<2024-01-02T03:04:05 1>"}` + "\n" + `{"ts":1704164645001,"trace_id":"<2024-01-02T03:04:05.001 2>"}` + "\n" +
				`{"ts":"1704164645002000","trace_id":"<2024-01-02T03:04:05.002 3>"}` + "\n" + `{"ts":1704164645003000000,"trace_id":"<2024-01-02T03:04:05.003 4>"}` + "\n" +
				`{"ts":"2024-01-02 03:04:05.004","trace_id":"<2024-01-02T03:04:05.004 5>"}`, nil},
		{"before 2020", `{"ts":"2019-12-31T23:59:59.999Z"}` + "\n" + `{"ts":"2020-01-01T00:00:00Z"}`, Options{},
			`{"ts":"2019-12-31T23:59:59.999Z"}` + "\n" + `{"ts":"2020-01-01T00:00:00Z","trace_id":"<2020-01-01T00:00:00 1>"}`,
			[]string{"1: 2019-12-31T23:59:59.999Z: traceid: the time is before 2020-01-01T00:00:00Z"}},
		{"truncated and invalid lines", `{"ts":"2024-01-02T03:04:05Z","a":"hal` + "\n" + `{"ts":1704164645}` + "\nnot JSON\n[1]\n{}\n" + `{"ts":null}` + "\n" + `{"ts":{}}` + "\n" + `{"ts":"soon"}` + "\n" + `{"ts":170416`, Options{},
			`{"ts":"2024-01-02T03:04:05Z","a":"hal` + "\n" + `{"ts":1704164645,"trace_id":"<2024-01-02T03:04:05 1>"}` + "\nnot JSON\n[1]\n{}\n" + `{"ts":null}` + "\n" + `{"ts":{}}` + "\n" + `{"ts":"soon"}` + "\n" + `{"ts":170416`,
			[]string{"1: not a whole JSON object", "3: not a whole JSON object", "4: not a whole JSON object", `5: there is no field "ts"`, `6: field "ts": "" is not a time`, `7: field "ts": "{}" is not a time`, `8: field "ts": "soon" is not a time`, "9: not a whole JSON object"}},
		{"has an ID", `{"trace_id":"x","ts":"never"}` + "\n" + `{"trace_id":"","ts":1704164645}` + "\n" + `{"a":{"trace_id":"x"},"trace_id" : null ,"ts":1704164645}`, Options{},
			`{"trace_id":"x","ts":"never"}` + "\n" + `{"trace_id":"<2024-01-02T03:04:05 1>","ts":1704164645}` + "\n" + `{"a":{"trace_id":"x"},"trace_id" : "<2024-01-02T03:04:05 2>" ,"ts":1704164645}`, nil},
		{"escaped and repeated names", `{"\u0074s":"never","ts":0,"ts":1704164645}`, Options{}, `{"\u0074s":"never","ts":0,"ts":1704164645,"trace_id":"<2024-01-02T03:04:05 1>"}`, nil},
		{"nested and dotted", `{"a":{"b.c":{"ts":1704164645}}}` + "\n" + `{"a.b.c.ts":1704164646,"a":{"b.c":{"ts":1704164645}}}`, Options{TimeField: "a.b.c.ts"},
			`{"a":{"b.c":{"ts":1704164645}},"trace_id":"<2024-01-02T03:04:05 1>"}` + "\n" + `{"a.b.c.ts":1704164646,"a":{"b.c":{"ts":1704164645}},"trace_id":"<2024-01-02T03:04:06 2>"}`, nil},
		{"keys", `{"ts":1704164645,"k":"a"}` + "\n" + `{"ts":1704164646,"k":"b"}` + "\n" + `{"ts":1704164647,"k":"\u0061"}` + "\n" + `{"ts":1704164648,"k":7}` + "\n" + `{"ts":1704164649,"k":"7"}` + "\n" + `{"ts":1704164650}` + "\n" + `{"ts":1704164651,"k":""}` + "\n" + `{"ts":1704164652,"k":null}`,
			Options{KeyField: "k"},
			`{"ts":1704164645,"k":"a","trace_id":"<2024-01-02T03:04:05 1>"}` + "\n" + `{"ts":1704164646,"k":"b","trace_id":"<2024-01-02T03:04:06 2>"}` + "\n" +
				`{"ts":1704164647,"k":"\u0061","trace_id":"<2024-01-02T03:04:05 1>"}` + "\n" + `{"ts":1704164648,"k":7,"trace_id":"<2024-01-02T03:04:08 3>"}` + "\n" +
				`{"ts":1704164649,"k":"7","trace_id":"<2024-01-02T03:04:08 3>"}` + "\n" + `{"ts":1704164650,"trace_id":"<2024-01-02T03:04:10 4>"}` + "\n" +
				`{"ts":1704164651,"k":"","trace_id":"<2024-01-02T03:04:11 5>"}` + "\n" + `{"ts":1704164652,"k":null,"trace_id":"<2024-01-02T03:04:12 6>"}`, nil},
		{"a key's first valid record counts", `{"ts":"2019-01-01T00:00:00Z","k":"a"}` + "\n" + `{"ts":1704164645,"k":"a"}`, Options{KeyField: "k"},
			`{"ts":"2019-01-01T00:00:00Z","k":"a"}` + "\n" + `{"ts":1704164645,"k":"a","trace_id":"<2024-01-02T03:04:05 1>"}`, []string{"1: 2019-01-01T00:00:00Z: traceid: the time is before"}},
		{"nested too deep", strings.Repeat(`{"a":`, 100_000), Options{}, strings.Repeat(`{"a":`, 100_000), []string{"1: not a whole JSON object"}},
		{"too long", `{"ts":1,"a":"` + long + `"}` + "\n" + `{"ts":1704164645}`, Options{},
			`{"ts":1,"a":"` + long + `"}` + "\n" + `{"ts":1704164645,"trace_id":"<2024-01-02T03:04:05 1>"}`, []string{"1: the record is longer than 16 MiB"}},
		{"nothing", "", Options{}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var reports []string
			o := Options{TimeField: "ts", IDField: "trace_id", NewID: counter(), KeyField: c.o.KeyField,
				Report: func(line int64, err error) { reports = append(reports, fmt.Sprintf("%d: %v", line, err)) }}
			if c.o.TimeField != "" {
				o.TimeField = c.o.TimeField
			}
			var out bytes.Buffer
			var in io.Reader = strings.NewReader(c.in)
			if len(c.in) < MaxRecord { // one byte at a time, because no record may depend on where reads end
				in = iotest.OneByteReader(in)
			}
			s, err := NDJSON(t.Context(), &out, in, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := showIDs(out.String()); got != c.want {
				t.Errorf("got\n%.2000s\nwant\n%.2000s", got, c.want)
			}
			if !slices.EqualFunc(reports, c.reports, strings.HasPrefix) {
				t.Errorf("reports %q, want %q", reports, c.reports)
			}
			records := int64(0)
			for line := range strings.Lines(c.in) {
				if strings.TrimSpace(line) != "" {
					records++
				}
			}
			if s.Added+s.Kept+s.Failed != records || s.Failed != int64(len(reports)) || s.Added != int64(strings.Count(c.want, "<20")) {
				t.Errorf("%+v for %d records with %d reports does not add up", s, records, len(reports))
			}
		})
	}
}

func TestDeterministic(t *testing.T) {
	ring := func(secrets string) *randflake.Keyring {
		k, err := randflake.ParseKeyring(strings.NewReader(secrets))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := ring("dffd6021bb2bd5b0af676290809ec3a5")
	when := time.Date(2024, 1, 2, 3, 4, 5, 6789e3, time.UTC)
	get := func(k *randflake.Keyring, at time.Time, key string) trace.TraceID {
		id, err := Deterministic(k)(at, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := get(k, when, "a")
	// A known answer: records must get the same ID in every later run.
	if got, want := id.String(), "0eb4dcf84735067e58d6a172203ef26c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if get(k, when.Add(time.Microsecond), "a") != id {
		t.Error("times in one millisecond yield different IDs")
	}
	for name, got := range map[string]trace.TraceID{
		"key": get(k, when, "b"), "time": get(k, when.Add(time.Millisecond), "a"),
		"secret": get(ring("00112233445566778899aabbccddeeff\ndffd6021bb2bd5b0af676290809ec3a5"), when, "a"),
	} {
		if [8]byte(got[8:]) == [8]byte(id[8:]) {
			t.Errorf("with another %s, the low half is the same", name)
		}
	}
	if traceid.Inspect(k, id).Agree || !traceid.Time(id).Equal(when.Truncate(time.Millisecond)) {
		t.Errorf("%s verifies, or has another time", id)
	}
	for at, want := range map[time.Time]error{
		time.UnixMilli(traceid.EpochMillis - 1):                      traceid.ErrBeforeEpoch,
		time.UnixMilli(traceid.EpochMillis):                          nil,
		time.UnixMilli(traceid.EpochMillis + 1<<41 - 1).Add(999_999): nil,
		time.UnixMilli(traceid.EpochMillis + 1<<41):                  traceid.ErrAfterEnd,
	} {
		if id, err := Deterministic(k)(at, nil); !errors.Is(err, want) || (err == nil) != id.IsValid() {
			t.Errorf("%v: %v, %v, want %v", at, id, err, want)
		}
	}
}

func TestErrorsEndTheRun(t *testing.T) {
	broken := errors.New("broken")
	in := strings.Repeat(`{"ts":1704164645,"k":"a"}`+"\n", 100_000)
	o := Options{TimeField: "ts", IDField: "trace_id", NewID: counter(), Report: func(int64, error) {}}
	if _, err := NDJSON(t.Context(), io.Discard, io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken)), o); !errors.Is(err, broken) {
		t.Errorf("reading: %v", err)
	}
	read, write := io.Pipe()
	_ = read.CloseWithError(broken)
	if _, err := NDJSON(t.Context(), write, strings.NewReader(in), o); !errors.Is(err, broken) {
		t.Errorf("writing: %v", err)
	}
	var keys []string
	fails := o
	fails.KeyField = "k"
	fails.NewID = func(_ time.Time, key []byte) (trace.TraceID, error) {
		keys = append(keys, string(key))
		return trace.TraceID{1}, map[bool]error{len(keys) == 3: broken}[true]
	}
	var out strings.Builder
	in = `{"ts":1704164645,"k":"a"}` + "\n" + `{"ts":1704164645}` + "\r\n" + `{"ts":1,"k":"b"}`
	if _, err := NDJSON(t.Context(), &out, strings.NewReader(in), fails); !errors.Is(err, broken) || strings.Contains(out.String(), `"b"`) {
		t.Errorf("generating: %v after %s", err, &out)
	}
	if want := []string{"a", `{"ts":1704164645}`, "b"}; !slices.Equal(keys, want) {
		t.Errorf("IDs for %q, want %q", keys, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NDJSON(ctx, io.Discard, strings.NewReader(in), o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func FuzzNDJSON(f *testing.F) {
	f.Add(`{"ts":1704164645,"k":"a"}`)
	f.Add(` { "ts" : "2024-01-02T03:04:05Z" } ` + "\r\n" + `{"ts":1`)
	f.Add(`{"trace_id":null,"ts":1e9,"trace_id":""}`)
	f.Fuzz(func(t *testing.T, in string) {
		var out strings.Builder
		if _, err := NDJSON(t.Context(), &out, strings.NewReader(in), Options{TimeField: "ts", IDField: "trace_id", NewID: counter(), Report: func(int64, error) {}}); err != nil {
			t.Fatal(err)
		}
		got, want := strings.Split(out.String(), "\n"), strings.Split(in, "\n")
		if len(got) != len(want) {
			t.Fatalf("%d lines became %d", len(want), len(got))
		}
		for i := range got {
			if json.Valid([]byte(want[i])) && !json.Valid([]byte(got[i])) {
				t.Fatalf("%q became %q", want[i], got[i])
			}
		}
		// Without the IDs, the output equals the input.
		if bare := addedNDJSON.ReplaceAllString(out.String(), ""); !strings.Contains(in, "trace_id") && !strings.Contains(in, `\u00`) && bare != in {
			t.Fatalf("%q became %q", in, out.String())
		}
	})
}

var addedNDJSON = regexp.MustCompile(`,"trace_id":"[0-9a-f]{32}"`)
