package randflake

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/sparx64"
)

func newCodec(t testing.TB, secret string) *Codec {
	t.Helper()
	c, err := NewCodec([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Encode truncates fractions of a second. What it refuses is in TestFormatNoID, and that IDs decode
// after 2041, when the known Go implementation cannot decode its own, in TestFormat.
func TestEncode(t *testing.T) {
	c := newCodec(t, "0123456789abcdef")
	p := Parts{Time: time.Unix(Epoch+5, 999_999_999), Node: 3, Sequence: 4}
	id, err := c.Encode(p)
	p.Time = time.Unix(Epoch+5, 0).UTC()
	if got := c.Decode(id); err != nil || got != p {
		t.Errorf("%+v, %v; want %+v", got, err, p)
	}
}

// What fmt, JSON and slog show of a codec, a keyring or a generator is the same under both
// secrets.
func TestSecretIsNeverShown(t *testing.T) {
	noTime := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	shown := map[string]bool{}
	for _, secret := range []string{"SeCrEt0123456789", "another secret!!"} {
		c := newCodec(t, secret)
		k := NewKeyring(c)
		var out strings.Builder
		for _, v := range []any{c, *c, k, *k} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				fmt.Fprintf(&out, verb+"\n", v)
			}
			j, err := json.Marshal(v)
			fmt.Fprintf(&out, "%s %v\n", j, err)
			slog.New(slog.NewTextHandler(&out, noTime)).Info("x", "v", v)
			slog.New(slog.NewJSONHandler(&out, noTime)).Info("x", "v", v)
		}
		shown[out.String()] = true
		g, err := NewGenerator(c, Lease{Nodes: 8, Start: time.Unix(Epoch, 0), End: time.Unix(Epoch+1, 0)})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{g, struct{ k Keyring }{*k}} { // shown with addresses, which are never the same
			text := fmt.Sprintf("%v %+v %#v %s %x %d", v, v, v, v, v, v)
			for _, form := range []string{"%s", "%x", "%d", "%#v"} {
				if part := strings.Trim(fmt.Sprintf(form, []byte(secret)[:4]), "[]byte{}"); strings.Contains(text, part) {
					t.Errorf("%T shows %q: %s", v, part, text)
				}
			}
		}
	}
	if len(shown) != 1 {
		t.Errorf("the output depends on the secret: %v", shown)
	}
	c := newCodec(t, "SeCrEt0123456789")
	if got := fmt.Sprint(c, *c); got != "randflake.Codec(hidden) randflake.Codec(hidden)" {
		t.Errorf("printed %q", got)
	}
}

func TestParseIsStrict(t *testing.T) {
	for _, s := range []string{
		"", " ", "00", "01", "-1", "+1", "A", "3VGOE12CCB8GH", "w", "z", "1 ", " 1", "1_0", "0x1", "1=", "é",
		"g000000000000", "vvvvvvvvvvvvv", "10000000000000", strings.Repeat("1", 1000),
	} {
		if id, err := Parse(s); !errors.Is(err, ErrInvalidID) || id != 0 {
			t.Errorf("Parse(%q) = %d, %v; want ErrInvalidID", s, id, err)
		}
	}
	for s, want := range map[string]ID{
		"0": 0, "1": 1, "v": 31, "10": 32, "fvvvvvvvvvvvv": math.MaxUint64, "8000000000000": 1 << 63,
	} {
		if id, err := Parse(s); err != nil || id != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", s, id, err, want)
		}
	}
}

// FuzzParse compares texts with those of their IDs.
func TestText(t *testing.T) {
	type record struct {
		ID  ID
		Map map[ID]int
	}
	in := record{ID: math.MaxUint64, Map: map[ID]int{1 << 63: 1}}
	data, err := json.Marshal(in)
	if want := `{"ID":"fvvvvvvvvvvvv","Map":{"8000000000000":1}}`; err != nil || string(data) != want {
		t.Errorf("JSON %s, %v, want %s", data, err, want)
	}
	var out record
	if err := json.Unmarshal(data, &out); err != nil || out.ID != in.ID || out.Map[1<<63] != 1 {
		t.Errorf("decoded from JSON: %+v, %v", out, err)
	}
	id := ID(7)
	if err := id.UnmarshalText([]byte("A")); !errors.Is(err, ErrInvalidID) || id != 7 {
		t.Errorf("UnmarshalText of an invalid text: %v, ID %d", err, id)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "3vgoe12ccb8gh", "fvvvvvvvvvvvv", "g000000000000", "00", "A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := Parse(s)
		if err == nil && id.String() != s {
			t.Errorf("Parse(%q) is %d, whose text is %q", s, id, id)
		}
		if err != nil && !errors.Is(err, ErrInvalidID) {
			t.Errorf("Parse(%q): %v", s, err)
		}
	})
}

func FuzzCodec(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint64(1), uint32(1), uint32(1))
	f.Add([]byte("0123456789abcde"), uint64(1), uint32(1), uint32(1))
	f.Fuzz(func(t *testing.T, secret []byte, second uint64, node, sequence uint32) {
		c, err := NewCodec(secret)
		var size sparx64.KeySizeError
		if errors.As(err, &size) && int(size) == len(secret) && size != sparx64.KeySize && c == nil {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		want := Parts{Time: timeOf(second % (1 << secondBits)), Node: node & MaxNode, Sequence: sequence & MaxSequence}
		id, err := c.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Decode(id); got != want {
			t.Errorf("%+v decodes to %+v", want, got)
		}
	})
}
