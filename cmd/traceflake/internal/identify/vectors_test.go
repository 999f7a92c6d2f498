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
		Line  string           `json:"line"`
		Found []map[string]any `json:"found"`
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
		all, _ := x.Line(v.Line)
		got, want := asJSON(t, all), asJSON(t, v.Found)
		if *update {
			vectors.Lines[i].Found = nil
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
