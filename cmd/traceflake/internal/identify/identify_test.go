package identify

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/idgen"
	"github.com/traceflake/traceflake/randflake"
	"github.com/traceflake/traceflake/traceid"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)

func clock() time.Time { return now }

func keyring(t *testing.T, secrets ...string) *randflake.Keyring {
	t.Helper()
	k, err := randflake.ParseKeyring(strings.Join(secrets, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const secretA, secretB = "dffd6021bb2bd5b0af676290809ec3a5", "00112233445566778899aabbccddeeff"

// fleet makes IDs under a keyring's first secret, on node 42.
func fleet(t *testing.T, k *randflake.Keyring) *idgen.Generator {
	t.Helper()
	source, err := randflake.NewGenerator(k.Codec(),
		randflake.Lease{Node: 42, Nodes: 1, Start: now.Add(-time.Minute), End: now.Add(time.Hour)},
		randflake.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	return idgen.New(idgen.WithSource(source), idgen.WithClock(clock))
}

// show returns an identity in JSON, without its note.
func show(t *testing.T, identity Identity) string {
	t.Helper()
	identity.Note = ""
	text, err := json.Marshal(identity)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestID(t *testing.T) {
	k := keyring(t, secretA)
	id, span := fleet(t, k).NewIDs(t.Context())
	old, err := fleet(t, k).NewTraceIDAt(time.Date(2021, 2, 3, 4, 5, 6, 7e6, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	text := randflake.ID(binary.BigEndian.Uint64(span[:])).String()
	raw := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	const (
		second  = "2026-11-21T12:00:00Z"
		ofTrace = `{"kind":"traceflake trace ID","time":"2026-11-21T12:00:00.123Z","sequence":0`
		ofOld   = `{"kind":"traceflake trace ID","time":"2021-02-03T04:05:06.007Z","sequence":1,"halves":"disagree","second":"` + second + `","node":42,"node_sequence":0,"secret":`
		agrees  = ofTrace + `,"halves":"agree","second":"` + second +
			`","node":42,"node_sequence":0,"secret":`
		only64   = `{"kind":"64 bits"}`
		only128  = `{"kind":"128 bits"}`
		backfill = "if it is ours, it was given to an old record at " + second
	)
	ofSpan := func(secret string) string {
		return `{"kind":"Randflake ID","time":"` + second + `","second":"` + second +
			`","node":42,"node_sequence":1,"secret":` + secret + `,"text":"` + text + `"}`
	}
	for _, c := range []struct {
		name    string
		keyring *randflake.Keyring
		id      string
		want    string
		note    string
	}{
		{"trace ID", k, id.String(), agrees + "1}", ""},
		{"upper case", k, strings.ToUpper(id.String()), agrees + "1}", ""},
		{"as a UUID", k, raw, agrees + "1}", ""},
		{"older secret", keyring(t, secretB, secretA), id.String(), agrees + "2}", ""},
		{"no secret", nil, id.String(), ofTrace + "}", "by its time only"},
		{"another secret", keyring(t, secretB), id.String(), ofTrace + `,"halves":"disagree"}`,
			"does not match these secrets"},
		{"backfilled", k, old.String(), ofOld + "1}", backfill},
		{"backfilled, older secret", keyring(t, secretB, secretA), old.String(), ofOld + "2}",
			backfill},
		{"span ID", k, span.String(), ofSpan("1"), "no check"},
		{"decimal", k, fmt.Sprint(binary.BigEndian.Uint64(span[:])), ofSpan("1"), "no check"},
		{"span ID, older secret", keyring(t, secretB, secretA), span.String(), ofSpan("2"),
			"no check"},
		{"padded", k, "0000000000000000" + span.String(), ofSpan("1"), "padded to 128 bits"},
		{"base 32", k, text, ofSpan("1"), "no check"},
		{"base 32 without a secret", nil, text, `{"kind":"Randflake ID"}`,
			"in hex " + span.String() + "; a secret would decide"},
		{"base 32 of the future", k, "fvvvvvvvvvvvv", `{"kind":"Randflake ID"}`,
			"no secret decodes"},
		{"span ID without a secret", nil, span.String(), only64, "a secret would identify ours"},
		{"span ID of the future", k, "80f198ee56343ba8", only64, "from any tracer"},
		{"W3C's example", k, "4bf92f3577b34da6a3ce929d0e0e4736", only128,
			"its time would be 2040-09-05T"},
		{"an hour ahead", nil, traceid.Min(now.Add(time.Hour)).String(),
			`{"kind":"traceflake trace ID","time":"2026-11-21T13:00:00.123Z","sequence":0}`, ""},
		{"further ahead", nil, traceid.Min(now.Add(time.Hour + time.Millisecond)).String(), only128,
			"not ours"},
	} {
		all, err := Identifier{Keyring: c.keyring, Now: now}.ID(c.id)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %+v, %v", c.name, all, err)
		}
		if got := show(t, all[0]); got != c.want || !strings.Contains(all[0].Note, c.note) {
			t.Errorf("%s: got  %s, %s\nwant %s, %s", c.name, got, all[0].Note, c.want, c.note)
		}
	}
	// A secret in sixteen decodes foreign 64 bits to a time in the past, too.
	rows := 0
	for i := range 64 {
		all, err := Identifier{Keyring: keyring(t, fmt.Sprintf("%032x", i+1), secretA),
			Now: now}.ID(span.String())
		if err != nil || show(t, all[len(all)-1]) != ofSpan("2") {
			t.Fatalf("%+v, %v", all, err)
		}
		rows += len(all)
	}
	if rows < 65 || rows > 80 {
		t.Errorf("%d rows for 64 pairs of secrets", rows)
	}
}

func TestForeign(t *testing.T) {
	ulidOf := func(t time.Time) string { return fmt.Sprintf("%012x%020x", t.UnixMilli(), 5) }
	for _, c := range []struct{ id, want string }{
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "UUID v7 2022, traceflake trace ID 2020"},
		// not a UUID's variant
		{"017f22e2-79b0-7cc3-18c4-dc0c0c07398f", "ULID 2022, traceflake trace ID 2020"},
		{"017f22e279b04cc398c4dc0c0c07398f", "ULID 2022, traceflake trace ID 2020"},
		{ulidOf(now.Add(time.Hour)), "ULID 2026, traceflake trace ID 2020"},
		{ulidOf(now.Add(time.Hour + time.Millisecond)), "traceflake trace ID 2020"},
		{ulidOf(foreignFrom), "ULID 2016, traceflake trace ID 2020"},
		{ulidOf(foreignFrom.Add(-time.Millisecond)), "traceflake trace ID 2020"},
		{"5759e988bd862e3fe1be46a994272793", "X-Ray 2016"},
		{"1-5759e988-bd862e3fe1be46a994272793", "X-Ray 2016"},
		{"6553f1000000000015d3b1c9d8f6b0e2", "Datadog 2023"},
		{"4bf92f3577b34da6a3ce929d0e0e4736", "128 bits 0001"},
		{"4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "128 bits 0001, UUID v4 0001"},
		{"4bf92f35-77b3-4da6-73ce-929d0e0e4736", "128 bits 0001"},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "ULID 2016"},
		{"7zzzzzzzzzzzzzzzzzzzzzzzzz", "ULID 0001"},
	} {
		all, err := Identifier{Now: now}.ID(c.id)
		var got []string
		for _, identity := range all {
			got = append(got, fmt.Sprint(identity.Kind, " ", identity.Time.Format("2006")))
		}
		if err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, %v, want %s", c.id, got, err, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	const traceT, spanS, spanP = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7",
		"05e3ac9a4f6e3b90"
	for _, c := range []struct{ line, want string }{
		{traceT, " " + traceT},
		{`  "` + traceT + `",`, " " + traceT},
		{"traceparent: 00-" + traceT + "-" + spanS + "-01", "trace " + traceT + ", span " + spanS},
		{"Traceparent:00-" + traceT + "-" + spanS + "-01-more", "trace " + traceT + ", span " +
			spanS},
		{"00-" + traceT + "-" + spanS + "-01", "trace " + traceT + ", span " + spanS},
		{"b3: " + traceT + "-" + spanS + "-1-" + spanP, "trace " + traceT + ", span " + spanS +
			", parent " + spanP},
		{"b3: " + spanP + "-" + spanS, "trace " + spanP + ", span " + spanS},
		{spanP + "-" + spanS + "-d", "trace " + spanP + ", span " + spanS},
		{"X-B3-TraceId: " + traceT, "trace " + traceT},
		{"x-b3-spanid: " + spanS, "span " + spanS},
		{"X-B3-ParentSpanId: '" + spanP + "'", "parent " + spanP},
		{"X-Trace-Id:\t\"" + traceT + `",`, "trace " + traceT},
		{"X-Amzn-Trace-Id: Root=1-5759e988-bd862e3fe1be46a994272793; Parent=" + spanS +
			";Sampled=1",
			"trace 1-5759e988-bd862e3fe1be46a994272793, span " + spanS},
		{"4bf92f35-77b3-5da6-a3ce-929d0e0e4736", " 4bf92f35-77b3-5da6-a3ce-929d0e0e4736"},
		{"0X" + spanS, " " + spanS},
		{`{"parent.id":"` + spanS + `"}`, "parent " + spanS},
		{`{"time":"2026-01-02T03:04:05Z","msg":"a: b","trace_id":"` + traceT + `","span_id":"` +
			spanS + `"}`, "span " + spanS + ", trace " + traceT},
		{`{"TraceId":"` + traceT + `","SpanId":""}`, "trace " + traceT},
		{`{"dd.trace_id":"` + spanS + `","trace":{"id":"` + traceT + `","n":1}}`,
			"trace " + spanS + ", trace " + traceT},
		{`{"ctx":{"traceId":"` + traceT + `","parentSpanId":"` + spanS + `"}}`,
			"parent " + spanS + ", trace " + traceT},
		{"trace_id: " + traceT, "trace " + traceT},
		{"uber-trace-id: " + traceT + ":" + spanS + ":0:1", "trace " + traceT + ", span " + spanS},
		{"uber-trace-id: " + traceT + "%3Af067aa0ba902b7%3A5e3ac9a4f6e3b90%3A01",
			"trace " + traceT + ", span " + spanS + ", parent " + spanP},
		// without leading zeros
		{"f067aa0ba902b7:f067aa0ba902b7:0:1", "trace " + spanS + ", span " + spanS},
		{traceT[1:] + ":" + spanS + ":0000000000000000:1", "trace 0" + traceT[1:] + ", span " +
			spanS},
		{"time=2026-01-02T03:04:05Z level=INFO msg=\"span_id=x y\" trace_id=" + traceT +
			" span_id=" + spanS, "trace " + traceT + ", span " + spanS},
		{`msg="a: \"b" traceID="` + traceT + `" spanID="" n=1`, "trace " + traceT},
		{"12:30 INFO done [trace_id=" + traceT + ", span_id=" + spanS + "]",
			"trace " + traceT + ", span " + spanS},
		{"level=info traceparent=00-" + traceT + "-" + spanS + "-01",
			"trace " + traceT + ", span " + spanS},
		{`{"headers":{"traceparent":"00-` + traceT + "-" + spanS + `-01"}}`,
			"trace " + traceT + ", span " + spanS},
		{"12:30:45 INFO [shop," + traceT + "," + spanS + "] done", "trace " + traceT + ", span " +
			spanS},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", " 01ARZ3NDEKTSV4RRFFQ69G5FAV"},
	} {
		found, err := Identifier{Now: now}.Line(c.line)
		var got []string
		for _, f := range found {
			got = append(got, f.Role+" "+f.ID)
		}
		if err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%q: %q, %v, want %q", c.line, got, err, c.want)
		}
	}
	for _, c := range []struct{ line, want string }{
		{"b3: 0", "trace: not an ID: \"0\" is all zeros"},
		{"traceparent: 00", "the header contains none"},
		{"traceparent: 00-" + traceT[:31] + "-" + spanS + "-01", "has 31 hex digits"},
		{"traceparent: 00-" + strings.Repeat("0", 32) + "-" + spanS + "-01", "trace: not an ID"},
		{"time=12:00 level=INFO", "not an ID"},
		{"", "empty"},
		{"x-trace-id: " + traceT[:31], "has 31 hex digits"},
		{strings.Repeat("0", 16), "all zeros"},
		{"hello world", "does not look like an ID"},
		{strings.Repeat("x", 10_000), "xx\" does not look like"},
		{"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "does not look like"}, // past 128 bits
		{"01ARZ3NDEKTSV4RRFFQ69G5FAI", "does not look like"}, // ULIDs have no I
		{"uber-trace-id: 0:0:0:0", "\"0000000000000000\" is all zeros"},
		{"12:30:45:01", "does not look like"},
		{"level=INFO msg=x trace_id=x", "trace: not an ID: \"x\" does not look like"},
		{`{"msg":"x"}`, "the JSON object has no field such as trace_id"},
		{`{"trace_id":null}`, "the JSON object has no field"},
		{`{"trace_id":"` + traceT, "does not end as one"},
	} {
		if _, err := (Identifier{Now: now}).Line(c.line); !errors.Is(err, ErrUnknown) ||
			!strings.Contains(err.Error(), c.want) || len(err.Error()) > 250 {
			t.Errorf("%.40q: %v, want %q", c.line, err, c.want)
		}
	}
	// The valid part of a header is returned all the same.
	found, err := Identifier{Now: now}.Line("traceparent: 00-" + traceT + "-" +
		strings.Repeat("0", 16) + "-01")
	if err == nil || len(found) != 1 || found[0].Role != "trace" {
		t.Errorf("%v, %v", found, err)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
	f.Add(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","b":{"SpanId":1}}`)
	k, err := randflake.ParseKeyring(secretA)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		found, err := Identifier{Keyring: k, Now: now}.Line(line)
		if err == nil && len(found) == 0 {
			t.Error("nothing found and no error")
		}
		for _, id := range found {
			if _, err := json.Marshal(id); err != nil || id.Kind == "" {
				t.Errorf("%q: %+v, %v", line, id, err)
			}
		}
	})
}

// The trace ID is found in every form of a line.
func TestTraceIDIn(t *testing.T) {
	const traceT, spanS = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const padded = "0000000000000000" + spanS
	for line, want := range map[string]string{
		traceT: traceT, "0X" + strings.ToUpper(traceT): traceT,
		"traceparent: 00-" + traceT + "-" + spanS + "-01":         traceT,
		"b3: " + traceT + "-" + spanS + "-1":                      traceT,
		"uber-trace-id: " + traceT + ":" + spanS + ":0:1":         traceT,
		"level=info span_id=" + spanS + " trace_id=" + traceT:     traceT,
		`{"span_id":"` + spanS + `","trace_id":"` + traceT + `"}`: traceT,
		"done " + spanS + " " + traceT:                            traceT,
		"1-5759e988-bd862e3fe1be46a994272793":                     "5759e988bd862e3fe1be46a994272793",
		"4bf92f35-77b3-4da6-a3ce-929d0e0e4736":                    traceT,
		"01ARZ3NDEKTSV4RRFFQ69G5FAV":                              "01563e3ab5d3d6764c61efb99302bd5b",
		spanS:                                                     padded,
		"67667974448284343":                                       padded,
	} {
		if id, err := TraceIDIn(line); err != nil || id.String() != want {
			t.Errorf("%q: %s, %v, want %s", line, id, err, want)
		}
	}
	for _, line := range []string{"", "x", "span_id=" + spanS, `{"span_id":"` + spanS + `"}`,
		"trace_id=" + traceT[1:], "3vgoe12ccb8gh"} {
		if id, err := TraceIDIn(line); !errors.Is(err, ErrUnknown) || id.IsValid() {
			t.Errorf("%q: %s, %v, want an error", line, id, err)
		}
	}
}
