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
		"":                               "the epoch is not a date",
		"2020-01-01":                     "0 fields named time",
		"2020-01-01,time=41,time=2":      "2 fields named time",
		"2020-01-01,time=41,machine":     "want a field and its bits",
		"2020-01-01,time=41,machine=0":   "want a field and its bits",
		"2020-01-01,time=41,machine=24":  "65 bits, more than 64",
		"2020-01-01,time=60":             "at most 53 bits",
		"2020-01-01,time=41,unit=x":      "want a duration such as 10ms",
		"2020-01-01,time=41,unit=1ns":    "want a duration such as 10ms",
		"snowflake":                      "the epoch is not a date",
		"2020-01-01T00:00:00Z,machine=1": "0 fields named time",
	} {
		if l, err := ParseLayout(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, l, err, want)
		}
	}
	for id, bits := range map[uint64]int{1: 0, 1<<41 - 1: 0, 1 << 41: 1} {
		l, err := ParseLayout("0,time=41")
		if err != nil {
			t.Fatal(err)
		}
		if at, _, ok := l.read(id); ok != (bits == 0) || ok && at.UnixMilli() != int64(id) {
			t.Errorf("%d: %s, %v", id, at, ok)
		}
	}
}
