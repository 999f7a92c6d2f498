package randflake

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
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

// What fmt, JSON and slog show of a codec or a keyring does not depend on the secret, and nothing
// shows a part of it, not even inside another value.
func TestSecretIsNeverShown(t *testing.T) {
	const secret = "SeCrEt0123456789"
	c := newCodec(t, secret)
	k := NewKeyring(c)
	g, err := NewGenerator(c, lease(8, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []any{c, *c, k, *k, g, struct{ k Keyring }{*k}} {
		var out strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, v)
			if text != "randflake.Codec(hidden)" && text != "randflake.Keyring(hidden)" && i < 4 {
				t.Errorf("%T: %s shows %s", v, verb, text)
			}
			out.WriteString(text)
		}
		_ = json.NewEncoder(&out).Encode(v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		for _, form := range []string{"%s", "%x", "%d", "%#v"} {
			if part := strings.Trim(fmt.Sprintf(form, []byte(secret)[:4]), "[]byte{}"); strings.Contains(out.String(), part) {
				t.Errorf("%T shows %q: %s", v, part, out.String())
			}
		}
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

func FuzzCodec(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint64(1), uint32(1), uint32(1))
	f.Add([]byte("0123456789abcde"), uint64(1), uint32(1), uint32(1))
	f.Fuzz(func(t *testing.T, secret []byte, second uint64, node, sequence uint32) {
		c, err := NewCodec(secret)
		if size := sparx64.KeySizeError(0); errors.As(err, &size) != (len(secret) != sparx64.KeySize) {
			t.Fatal(err)
		} else if err != nil {
			return
		}
		want := Parts{Time: timeOf(second % (1 << secondBits)), Node: node & MaxNode, Sequence: sequence & MaxSequence}
		p := want
		p.Time = p.Time.Add(999_999_999) // which is truncated
		id, err := c.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Decode(id); got != want {
			t.Errorf("%+v decodes to %+v", want, got)
		}
	})
}

// vector is a known answer of testdata/format.json. Programs in other languages and stored data
// rely on them.
type vector struct {
	Name, Secret, Word, ID, Text, Wrong string
	UnixS                               int64 `json:"unix_s"`
	Node, Sequence                      int64
}

func vectors(t testing.TB) (f struct {
	Cipher      []struct{ Key, Plaintext, Ciphertext string }
	Randflake   []vector
	NoRandflake []vector `json:"no_randflake"`
}) {
	t.Helper()
	text, err := os.ReadFile("../testdata/format.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Cipher)*len(f.Randflake)*len(f.NoRandflake) == 0 {
		t.Fatal("vectors are missing")
	}
	return f
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (v vector) parts() Parts {
	return Parts{Time: time.Unix(v.UnixS, 0).UTC(), Node: uint32(v.Node), Sequence: uint32(v.Sequence)}
}

func TestFormat(t *testing.T) {
	for _, v := range vectors(t).Cipher {
		c, err := sparx64.NewCipher(unhex(t, v.Key))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, sparx64.BlockSize)
		if c.Encrypt(got, unhex(t, v.Plaintext)); hex.EncodeToString(got) != v.Ciphertext {
			t.Errorf("cipher: %x, want %s", got, v.Ciphertext)
		}
	}
	for _, v := range vectors(t).Randflake {
		c := newCodec(t, string(unhex(t, v.Secret)))
		id, err := c.Encode(v.parts())
		got, word := fmt.Sprintf("%016x", uint64(id)), fmt.Sprintf("%016x", c.decrypt(id))
		if err != nil || got != v.ID || id.String() != v.Text || word != v.Word {
			t.Errorf("%s: %s, %s of word %s, %v; want %s, %s of %s", v.Name, got, id, word, err, v.ID, v.Text, v.Word)
		}
		if got := c.Decode(id); got != v.parts() {
			t.Errorf("%s: decodes to %+v", v.Name, got)
		}
		if back, err := Parse(v.Text); err != nil || back != id {
			t.Errorf("%s: Parse: %d, %v", v.Name, back, err)
		}
	}
	c := newCodec(t, testSecret)
	for _, v := range vectors(t).NoRandflake {
		if min(v.Node, v.Sequence) < 0 || max(v.Node, v.Sequence) > math.MaxUint32 {
			continue // not a uint32
		}
		want := ErrInvalidParts
		if v.Wrong == "time" {
			if want = ErrBeforeEpoch; v.UnixS > Epoch {
				want = ErrEndOfLife
			}
		}
		if id, err := c.Encode(v.parts()); !errors.Is(err, want) || id != 0 {
			t.Errorf("%s: %s, %v, want %v", v.Name, id, err, want)
		}
	}
}
