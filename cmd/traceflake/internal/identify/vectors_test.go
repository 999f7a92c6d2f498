package identify

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/inspect.json anew")

// Lines and the kinds that they may be of, without a secret. They also test the page
// docs/inspect.html.
func TestVectors(t *testing.T) {
	type vector struct {
		Line      string           `json:"line"`
		Snowflake string           `json:"snowflake,omitempty"`
		Found     []map[string]any `json:"found"`
	}
	const path = "../../../../testdata/inspect.json"
	var vectors struct {
		About string   `json:"about"`
		NowMS int64    `json:"now_ms"`
		Lines []vector `json:"lines"`
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Lines) == 0 {
		t.Fatalf("%d lines, %v", len(vectors.Lines), err)
	}
	for i, v := range vectors.Lines {
		x := Identifier{Now: time.UnixMilli(vectors.NowMS)}
		if v.Snowflake != "" {
			if x.Snowflake, err = ParseLayout(v.Snowflake); err != nil {
				t.Fatal(err)
			}
		}
		all, _ := x.Line(v.Line)
		got, want := asJSON(t, all), asJSON(t, v.Found)
		if *update {
			err = json.Unmarshal([]byte(got), &vectors.Lines[i].Found)
		} else if got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", v.Line, got, want)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		var out strings.Builder
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if err := e.Encode(vectors); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// asJSON returns identities without their notes, with fields in order.
func asJSON(t *testing.T, identities any) string {
	t.Helper()
	text, err := json.Marshal(identities)
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	if err := json.Unmarshal(text, &objects); err != nil {
		t.Fatal(err)
	}
	if objects == nil {
		return "[]"
	}
	for _, o := range objects {
		delete(o, "note")
	}
	if text, err = json.Marshal(objects); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseLayout(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "the epoch is not a date",
		"2020-01-01":                    "0 fields named time",
		"2020-01-01,time=41,time=2":     "2 fields named time",
		"2020-01-01,time=41,machine":    "want a field and its bits",
		"2020-01-01,time=41,machine=0":  "want a field and its bits",
		"2020-01-01,time=41,machine=24": "65 bits, more than 64",
		"2020-01-01,time=60":            "at most 53 bits",

		"0,time=41,a=9223372036854775807,b=9223372036854775807": "want a field and its bits",

		"2020-01-01,time=41,unit=x":      "want a duration such as 10ms",
		"2020-01-01,time=41,unit=1ns":    "want a duration such as 10ms",
		"snowflake":                      "the epoch is not a date",
		"2020-01-01T00:00:00Z,machine=1": "0 fields named time",
	} {
		if l, err := ParseLayout(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, l, err, want)
		}
	}
	for id, want := range map[uint64]bool{1: true, 1<<41 - 1: true, 1 << 41: false} {
		l, err := ParseLayout("0,time=41")
		if err != nil {
			t.Fatal(err)
		}
		if at, _, ok := l.read(id); ok != want || ok && at.UnixMilli() != int64(id) {
			t.Errorf("%d: %s, %v", id, at, ok)
		}
	}
}

// The unit of a layout need not divide a second, nor the time be one that RFC 3339 can express.
func TestUnits(t *testing.T) {
	for layout, want := range map[string]string{
		"0,time=53,unit=3ms":               "1970-02-04T17:20:00Z",
		"1500,time=53,unit=1500ms":         "2017-07-14T02:40:01.5Z",
		"2020-01-01,time=53,unit=1us":      "2020-01-01T00:16:40Z",
		"2020-01-01,time=53,unit=1h":       "",
		"-99999999999999,time=53,unit=1us": "",
		"2020-01-01,time=53,unit=2000000h": "",
	} {
		l, err := ParseLayout(layout)
		if err != nil {
			t.Fatal(err)
		}
		if at, _, ok := l.read(1_000_000_000); ok != (want != "") ||
			ok && at.Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %s, %v, want %s", layout, at, ok, want)
		}
	}
}
