package randflake

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// An ID has one text, which is also a string in JSON: JavaScript would read 6023947403358210776 as
// a number that ends in 1072. A database may have stored a number.
func TestText(t *testing.T) {
	for text, want := range map[string]ID{
		"0": 0, "1": 1, "v": 31, "10": 32, "576as7t1cr2mo": 6023947403358210776,
		"8000000000000": 1 << 63, "fvvvvvvvvvvvv": math.MaxUint64,
	} {
		value, err := want.Value()
		inJSON, err2 := json.Marshal(map[ID]ID{want: want})
		if err := errors.Join(err, err2); err != nil || value != text ||
			string(inJSON) != fmt.Sprintf(`{%q:%[1]q}`, text) {
			t.Errorf("%d: %s, in JSON %s, %v", uint64(want), value, inJSON, err)
		}
		var back map[ID]ID
		if err := json.Unmarshal(inJSON, &back); err != nil || back[want] != want {
			t.Errorf("%s: %v, %v", inJSON, back, err)
		}
		for _, src := range []any{text, []byte(text), int64(want)} {
			got := ID(7)
			if err := got.Scan(src); err != nil || got != want {
				t.Errorf("%v: %d, %v; want %d", src, got, err, want)
			}
		}
	}
	for _, bad := range []any{
		"", " ", "00", "01", "-1", "+1", "A", "3VGOE12CCB8GH", "w", "z", "1 ", " 1", "1_0", "0x1",
		"1=", "é", "g000000000000", "vvvvvvvvvvvvv", "10000000000000", strings.Repeat("1", 1000),
		[]byte("w"), nil, 1.0, uint64(1),
	} {
		id := ID(7)
		if err := id.Scan(bad); err == nil {
			t.Errorf("%v is read as %d", bad, id)
		}
		text, isText := bad.(string)
		if got, err := Parse(text); isText && (err == nil || got != 0 || id != 0) {
			t.Errorf("%q is read as %d and %d, %v", text, got, id, err)
		}
	}
	var id ID
	if err := json.Unmarshal([]byte("6023947403358210776"), &id); err == nil {
		t.Errorf("a number is read as %d", id)
	}
}
