package identify

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// Lines and the kinds that they may be of, without a secret. They also test the page
// docs/inspect.html.
func TestVectors(t *testing.T) {
	var vectors struct {
		NowMS int64 `json:"now_ms"`
		Lines []struct {
			Line  string
			Found []map[string]any
		}
	}
	text, err := os.ReadFile("../../../../testdata/inspect.json")
	if err == nil {
		err = json.Unmarshal(text, &vectors)
	}
	if err != nil || len(vectors.Lines) == 0 {
		t.Fatalf("%d lines, %v", len(vectors.Lines), err)
	}
	for _, v := range vectors.Lines {
		all, _ := Identifier{Now: time.UnixMilli(vectors.NowMS)}.Line(v.Line)
		if got, want := asJSON(t, all), asJSON(t, v.Found); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", v.Line, got, want)
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
