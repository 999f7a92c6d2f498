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

const (
	secretA = "dffd6021bb2bd5b0af676290809ec3a5"
	secretB = "00112233445566778899aabbccddeeff"
)

func TestKeyring(t *testing.T) {
	k, err := ParseKeyring("# since spring\r\n  " + strings.ToUpper(secretA) + " \r\n\n" + secretB)
	if err != nil || len(k.Codecs()) != 2 || k.Codec() != k.Codecs()[0] {
		t.Fatalf("%d secrets, want 2, the first for new IDs; %v", len(k.Codecs()), err)
	}
	k.Codecs()[0] = nil
	if k.Codec() == nil {
		t.Error("Codecs returns the keyring's own slice")
	}
	secret := unhex(t, secretA)
	c, err := NewCodec(secret)
	if one := NewKeyring(c); err != nil || one.Codec() != c || len(one.Codecs()) != 1 {
		t.Errorf("the keyring has %d secrets, want one; %v", len(one.Codecs()), err)
	}
	clear(secret) // the codec has a copy
	// Known answer: HKDF-SHA256 of RFC 5869 with no salt and the info "traceflake x".
	const want = "9b56d7be2673f03d0982e953854c72f4a7f4b5f38b8ef8e5f55b34c6bb144f77"
	for _, c := range []*Codec{c, k.Codec()} {
		if got := fmt.Sprintf("%x", c.Derive("x")); got != want {
			t.Errorf("derived %s, want %s", got, want)
		}
	}
	for name, k := range map[string]*Keyring{"nil": nil, "zero": {}, "of nil": NewKeyring(nil)} {
		if k.Codec() != nil || len(k.Codecs()) != 0 {
			t.Errorf("%s: %d secrets", name, len(k.Codecs()))
		}
	}
}

func TestParseKeyringRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "no secret",
		"# one\n\n":                        "no secret",
		secretA + "\n" + secretB[:31]:      "line 2 has 31 characters",
		secretA + secretB:                  "line 1 has 64 characters",
		"\n" + secretA[:31] + "x":          "line 2 has a character that is not a hex digit",
		secretA + " # old":                 "line 1 has 38 characters",
		strings.Repeat("0", 32):            "line 1 is all zeros",
		many(2) + strings.ToUpper(many(1)): "line 3 repeats line 1",
		many(64):                           "",
		many(65):                           "line 65 is one secret too many",
	} {
		_, err := ParseKeyring(text)
		if want == "" && err == nil {
			continue
		}
		if !errors.Is(err, ErrInvalidKeyring) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) > 8 && line[0] != '#' && strings.Contains(fmt.Sprint(err), line[:8]) {
				t.Errorf("the error shows the secret: %v", err)
			}
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "abcdef0123456789%016x\n", i)
	}
	return b.String()
}
