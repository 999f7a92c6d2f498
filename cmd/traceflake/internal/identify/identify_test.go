package identify

import (
	"encoding/binary"
	"encoding/json"
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

// fleet generates IDs under a keyring's first secret, on node 42.
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
		second   = "2026-11-21T12:00:00Z"
		ofTrace  = `{"kind":"traceflake trace ID","time":"2026-11-21T12:00:00.123Z","sequence":0`
		ofOld    = `{"kind":"traceflake trace ID","time":"2021-02-03T04:05:06.007Z","sequence":1`
		low      = `"second":"` + second + `","node":42,"node_sequence":0,"secret":`
		differ   = ofOld + `,"halves":"disagree",` + low
		agrees   = ofTrace + `,"halves":"agree",` + low
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
		{"backfilled", k, old.String(), differ + "1}", backfill},
		{"backfilled, older secret", keyring(t, secretB, secretA), old.String(), differ + "2}",
			backfill},
		{"span ID", k, span.String(), ofSpan("1"), "no check"},
		{"decimal", k, fmt.Sprint(binary.BigEndian.Uint64(span[:])), ofSpan("1"), "no check"},
		{"span ID, older secret", keyring(t, secretB, secretA), span.String(), ofSpan("2"),
			"no check"},
		{"padded", k, "0000000000000000" + span.String(), ofSpan("1"), "padded to 128 bits"},
		{"span ID without a secret", nil, span.String(), only64, "a secret would identify ours"},
		{"span ID of the future", k, "80f198ee56343ba8", only64, "from any tracer"},
		{"W3C's example", k, "4bf92f3577b34da6a3ce929d0e0e4736", only128,
			"its time would be 2040-09-05T"},
		{"an hour ahead", nil, traceid.Min(now.Add(time.Hour)).String(),
			`{"kind":"traceflake trace ID","time":"2026-11-21T13:00:00.123Z","sequence":0}`, ""},
		{"further ahead", nil, traceid.Min(now.Add(time.Hour + time.Millisecond)).String(), only128,
			"not ours"},
	} {
		all, err := Identifier{Keyring: c.keyring, Now: now}.Line(c.id)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %+v, %v", c.name, all, err)
		}
		got, note := show(t, all[0].Identity), all[0].Note
		if got != c.want || !strings.Contains(note, c.note) {
			t.Errorf("%s: got  %s, %s\nwant %s, %s", c.name, got, note, c.want, c.note)
		}
	}
	// A secret in sixteen decodes foreign 64 bits to a time in the past, too.
	rows := 0
	for i := range 64 {
		all, err := Identifier{Keyring: keyring(t, fmt.Sprintf("%032x", i+1), secretA),
			Now: now}.Line(span.String())
		if err != nil || show(t, all[len(all)-1].Identity) != ofSpan("2") {
			t.Fatalf("%+v, %v", all, err)
		}
		rows += len(all)
	}
	if rows < 65 || rows > 80 {
		t.Errorf("%d rows for 64 pairs of secrets", rows)
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
