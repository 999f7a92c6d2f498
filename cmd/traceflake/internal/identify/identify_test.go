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
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)

type clock struct{}

func (clock) Now() time.Time { return now }

func keyring(t *testing.T, secrets ...string) *randflake.Keyring {
	t.Helper()
	k, err := randflake.ParseKeyring(strings.NewReader(strings.Join(secrets, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const secretA, secretB = "dffd6021bb2bd5b0af676290809ec3a5", "00112233445566778899aabbccddeeff"

// fleet makes IDs under a keyring's first secret, on node 42.
func fleet(t *testing.T, k *randflake.Keyring) *idgen.Generator {
	t.Helper()
	source, err := randflake.NewGenerator(k.Codec(), randflake.Lease{Node: 42, Nodes: 1, Start: now.Add(-time.Minute), End: now.Add(time.Hour)},
		randflake.WithClock(clock{}))
	if err != nil {
		t.Fatal(err)
	}
	return idgen.New(idgen.WithSource(source), idgen.WithClock(clock{}))
}

// show returns a candidate as text: its kind, its time and its parts in JSON.
func show(t *testing.T, c Candidate) string {
	t.Helper()
	parts, err := json.Marshal(c.Parts)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Kind
	if !c.Time.IsZero() {
		s += " " + c.Time.Format(time.RFC3339Nano)
	}
	return strings.TrimSpace(s + " " + strings.Trim(string(parts), "{}"))
}

func TestOurs(t *testing.T) {
	k := keyring(t, secretA)
	id, span := fleet(t, k).NewIDs(t.Context())
	old, err := fleet(t, k).NewTraceIDAt(time.Date(2021, 2, 3, 4, 5, 6, 7e6, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	bits := binary.BigEndian.Uint64(span[:])
	text, signed := randflake.ID(bits).String(), fmt.Sprint(int64(bits))
	raw := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	const (
		second  = "2026-11-21T12:00:00Z"
		ofTrace = "traceflake trace ID 2026-11-21T12:00:00.123Z "
		low     = `"second":"` + second + `","node":42,"node_sequence":0,"secret":`
	)
	ofSpan := "Randflake ID " + second + ` "node":42,"node_sequence":1,"secret":1,"text":"` + text + `"`
	chances := map[string]float64{}
	for _, c := range []struct {
		name    string
		keyring *randflake.Keyring
		id      string
		want    string
		note    string
		rest    bool // other candidates follow
	}{
		{"trace ID", k, id.String(), ofTrace + `"sequence":0,` + low + `1,"halves":"agree"`, "", false},
		{"upper case", k, strings.ToUpper(id.String()), ofTrace + `"sequence":0,` + low + `1,"halves":"agree"`, "", false},
		{"as a UUID", k, raw, ofTrace + `"sequence":0,` + low + `1,"halves":"agree"`, "", false},
		{"older secret", keyring(t, secretB, secretA), id.String(), ofTrace + `"sequence":0,` + low + `2,"halves":"agree"`, "", false},
		{"no secret", nil, id.String(), ofTrace + `"sequence":0`, "by its time only", true},
		{"another secret", keyring(t, secretB), id.String(), ofTrace + `"sequence":0,"halves":"disagree"`, "does not match these secrets", true},
		{"backfilled", k, old.String(), `traceflake trace ID 2021-02-03T04:05:06.007Z "sequence":1,` + low + `1,"halves":"disagree"`, "given to an old record at " + second, true},
		{"backfilled, older secret", keyring(t, secretB, secretA), old.String(), `traceflake trace ID 2021-02-03T04:05:06.007Z "sequence":1,` + low + `2,"halves":"disagree"`, "given to an old record at " + second, true},
		{"span ID", k, span.String(), ofSpan, "no check", true},
		{"base-32", k, text, ofSpan, "no check", false},
		{"signed", k, signed, ofSpan, "no check", true},
		{"base-32 without a secret", nil, text, `Randflake ID "hex":"` + span.String() + `"`, "a secret would decide", false},
		{"base-32 of the future", k, "fvvvvvvvvvvvv", `Randflake ID "hex":"ffffffffffffffff"`, "under no secret", false},
		{"span ID without a secret", nil, span.String(), "64 bits", "a secret would identify ours", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := Identifier{Keyring: c.keyring, Now: now}.ID(c.id)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(t, all[0]); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !strings.Contains(all[0].Note, c.note) || len(all) > 1 != c.rest {
				t.Errorf("candidates %+v, want the note %q", all, c.note)
			}
			chances[c.name] = all[0].FalsePositives
		})
	}
	if chances["older secret"] != 2*chances["trace ID"] || chances["backfilled, older secret"] != 2*chances["backfilled"] {
		t.Errorf("two secrets do not fit twice as many random IDs: %v", chances)
	}
}

// Foreign IDs are listed as their kind first, even with a secret.
func TestForeign(t *testing.T) {
	const ulid, xray = `ULID 2016-07-30T23:54:10.259Z "text":"01ARZ3NDEKTSV4RRFFQ69G5FAV"`, `X-Ray 2016-12-01T18:00:00Z "X-Ray_form":"1-58406520-a006649127e371903a2de979"`
	for id, want := range map[string]string{
		// The examples of RFC 9562, appendix A.
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398f":          "UUID v7 2022-02-22T19:22:22Z",
		"urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f": "UUID v7 2022-02-22T19:22:22Z",
		"{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}":        "UUID v7 2022-02-22T19:22:22Z",
		"01arz3ndektsv4rrffq69g5fav":                    ulid,
		"01563e3ab5d3d6764c61efb99302bd5b":              ulid,
		"7ZZZZZZZZZZZZZZZZZZZZZZZZZ":                    "ULID",
		"1-58406520-a006649127e371903a2de979":           xray,
		"58406520a006649127e371903a2de979":              xray,
		"640cfd8d00000000abcdefab12345678":              `Datadog 128-bit 2023-03-11T22:15:41Z "_dd.p.tid":"640cfd8d00000000","low_64_bits":"12379814468735227512"`,
		"80f198ee56343ba8":                              "64 bits",
		"000000000000000080f198ee56343ba8":              "64 bits",
		"4bf92f3577b34da6a3ce929d0e0e4736":              "random 128 bits",
		"9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d":          "UUID v4",
		"12379814468735227512":                          "64 bits",
	} {
		for name, k := range map[string]*randflake.Keyring{"without a secret": nil, "with one": keyring(t, secretA)} {
			all, err := Identifier{Keyring: k, Now: time.Now()}.ID(id)
			if err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			if got := show(t, all[0]); got != want {
				t.Errorf("%s, %s: got  %s\nwant %s", id, name, got, want)
			}
			if byTime := len(id) == 32 && (want == ulid || want == xray); strings.HasPrefix(all[0].Note, "by its time only") != byTime {
				t.Errorf("%s, %s: note %q, but a text form shows the kind", id, name, all[0].Note)
			}
		}
	}
}

func TestLine(t *testing.T) {
	const traceT, spanS, spanP = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "05e3ac9a4f6e3b90"
	for _, c := range []struct{ line, want string }{
		{traceT, " " + traceT},
		{`  "` + traceT + `",`, " " + traceT},
		{"traceparent: 00-" + traceT + "-" + spanS + "-01", "trace " + traceT + ", span " + spanS},
		{"Traceparent:00-" + traceT + "-" + spanS + "-01-more", "trace " + traceT + ", span " + spanS},
		{"00-" + traceT + "-" + spanS + "-01", "trace " + traceT + ", span " + spanS},
		{"b3: " + traceT + "-" + spanS + "-1-" + spanP, "trace " + traceT + ", span " + spanS + ", parent " + spanP},
		{"b3: " + spanP + "-" + spanS, "trace " + spanP + ", span " + spanS},
		{spanP + "-" + spanS + "-d", "trace " + spanP + ", span " + spanS},
		{"X-B3-TraceId: " + traceT, "trace " + traceT},
		{"x-b3-spanid: " + spanS, "span " + spanS},
		{"X-B3-ParentSpanId: '" + spanP + "'", "parent " + spanP},
		{"X-Trace-Id:\t\"" + traceT + `",`, "trace " + traceT},
		{"X-Amzn-Trace-Id: Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1", "trace 1-5759e988-bd862e3fe1be46a994272793, span 53995c3f42cd8ad8"},
		{"Root=1-5759e988-bd862e3fe1be46a994272793", "trace 1-5759e988-bd862e3fe1be46a994272793"},
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", " 017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		{"{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}", " {017f22e2-79b0-7cc3-98c4-dc0c0c07398f}"},
		{"0X" + spanS, " " + spanS},
		{`{"parent.id":"` + spanS + `"}`, "parent " + spanS},
		{`{"time":"2026-01-02T03:04:05Z","msg":"a: b","trace_id":"` + traceT + `","span_id":"` + spanS + `"}`, "span " + spanS + ", trace " + traceT},
		{`{"TraceId":"` + traceT + `","SpanId":""}`, "trace " + traceT},
		{`{"dd.trace_id":"1541815603606036480","trace":{"id":"` + traceT + `","n":1}}`, "trace 1541815603606036480, trace " + traceT},
		{`{"ctx":{"traceId":"` + traceT + `","parentSpanId":"` + spanS + `"}}`, "parent " + spanS + ", trace " + traceT},
		{`{"spanId":1541815603606036480}`, "span 1541815603606036480"},
		{"trace_id: " + traceT, "trace " + traceT},
	} {
		found, err := Identifier{Now: now}.Line(c.line)
		var got []string
		for _, f := range found {
			got = append(got, f.Role+" "+f.ID)
			if len(f.Candidates) == 0 {
				t.Errorf("%q: no candidates for %s", c.line, f.ID)
			}
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
		{"X-Amzn-Trace-Id: Sampled=1", "the header contains none"},
		{"time=12:00 level=INFO", "not an ID"},
		{"", "empty"},
		{"x-trace-id: " + traceT[:31], "has 31 hex digits"},
		{strings.Repeat("0", 16), "all zeros"},
		{"hello world", "does not look like an ID"},
		{strings.Repeat("x", 10_000), "xx\" does not look like"},
		{`{"msg":"x"}`, "the JSON object has no field such as trace_id"},
		{`{"trace_id":null}`, "the JSON object has no field"},
		{`{"trace_id":"` + traceT, "does not end as one"},
		{`{"trace_id":["` + traceT + `"]}`, "trace: not an ID"},
	} {
		if _, err := (Identifier{Now: now}).Line(c.line); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 250 {
			t.Errorf("%.40q: %v, want %q", c.line, err, c.want)
		}
	}
	// The valid part of a header is returned all the same.
	found, err := Identifier{Now: now}.Line("traceparent: 00-" + traceT + "-" + strings.Repeat("0", 16) + "-01")
	if err == nil || len(found) != 1 || found[0].Role != "trace" {
		t.Errorf("%v, %v", found, err)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("1-58406520-a006649127e371903a2de979")
	f.Add("-9223372036854775808")
	f.Add(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","b":{"SpanId":1}}`)
	k, err := randflake.ParseKeyring(strings.NewReader(secretA))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		found, err := Identifier{Keyring: k, Now: now}.Line(line)
		if err == nil && len(found) == 0 {
			t.Error("nothing found and no error")
		}
		for _, id := range found {
			if _, err := json.Marshal(id); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			for _, c := range id.Candidates {
				if c.Kind == "" || c.FalsePositives <= 0 || c.FalsePositives > 1 {
					t.Errorf("%+v", c)
				}
			}
		}
	})
}
