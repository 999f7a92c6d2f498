package randflake

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestParseIsStrict(t *testing.T) {
	for _, s := range []string{
		"", " ", "00", "01", "-1", "+1", "A", "3VGOE12CCB8GH", "w", "z", "1 ", " 1", "1_0", "0x1",
		"1=",
		"é",
		"g000000000000", "vvvvvvvvvvvvv", "10000000000000", strings.Repeat("1", 1000),
	} {
		if id, err := Parse(s); err == nil || id != 0 {
			t.Errorf("Parse(%q) = %d, %v; want an error", s, id, err)
		}
	}
	for s, want := range map[string]ID{
		"0": 0, "1": 1, "v": 31, "10": 32, "fvvvvvvvvvvvv": math.MaxUint64,
		"8000000000000": 1 << 63,
	} {
		if id, err := Parse(s); err != nil || id != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", s, id, err, want)
		}
	}
}

// A database gets the text, and may have stored a number.
func TestIDInSQL(t *testing.T) {
	for _, want := range []ID{0, 1, 6023947403358210776, math.MaxUint64} {
		text, err := want.Value()
		for _, src := range []any{text, []byte(text.(string)), int64(want)} {
			got := ID(7)
			if err = errors.Join(err, got.Scan(src)); err != nil || got != want {
				t.Errorf("%v: %d, %v; want %d", src, got, err, want)
			}
		}
	}
	for _, bad := range []any{nil, "", "01", []byte("w"), 1.0, uint64(1)} {
		var id ID
		if err := id.Scan(bad); err == nil {
			t.Errorf("%v is read as %d", bad, id)
		}
	}
}

// In JSON an ID is a string, also as the key of an object: JavaScript would read
// 6023947403358210776 as a number that ends in 1072.
func TestIDInJSON(t *testing.T) {
	type value struct {
		ID  ID
		Map map[ID]int
	}
	want := value{6023947403358210776, map[ID]int{math.MaxUint64: 1, 0: 2}}
	const text = `{"ID":"576as7t1cr2mo","Map":{"0":2,"fvvvvvvvvvvvv":1}}`
	got, err := json.Marshal(want)
	if err != nil || string(got) != text {
		t.Errorf("%s, %v", got, err)
	}
	var back value
	if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, want) {
		t.Errorf("%+v, %v", back, err)
	}
	for _, bad := range []string{`{"ID":6023947403358210776}`, `{"ID":"01"}`, `{"ID":""}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil || back.ID != 0 && bad[6] == '"' {
			t.Errorf("%s: %v, %v", bad, back, err)
		}
	}
}
