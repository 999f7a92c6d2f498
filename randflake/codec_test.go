package randflake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/sparx64"
)

type knownAnswer struct {
	Secret      string `json:"secret"`
	NodeID      uint32 `json:"node_id"`
	Timestamp   int64  `json:"timestamp"`
	Sequence    uint32 `json:"sequence"`
	RawID       string `json:"raw_id"`
	EncryptedID string `json:"encrypted_id"`
	EncodedID   string `json:"encoded_id"`
}

func knownAnswers(t *testing.T) []knownAnswer {
	t.Helper()
	data, err := os.ReadFile("testdata/randflake.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []knownAnswer
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("%d known answers", len(out))
	}
	return out
}

func newCodec(t testing.TB, secret string) *Codec {
	t.Helper()
	c, err := NewCodec([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKnownAnswers(t *testing.T) {
	for _, want := range knownAnswers(t) {
		var secret []byte
		if _, err := fmt.Sscanf(want.Secret, "%x", &secret); err != nil {
			t.Fatal(err)
		}
		c := newCodec(t, string(secret))
		p := Parts{Time: time.Unix(want.Timestamp, 0).UTC(), Node: want.NodeID, Sequence: want.Sequence}
		id, err := c.Encode(p)
		if err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		if got := strconv.FormatInt(int64(id), 10); got != want.EncryptedID {
			t.Errorf("%+v: encrypted %s", want, got)
		}
		if id.String() != want.EncodedID {
			t.Errorf("%+v: text %s", want, id)
		}
		if got := strconv.FormatUint(c.decrypt(id), 10); got != want.RawID {
			t.Errorf("%+v: raw %s", want, got)
		}
		if got := c.Decode(id); got != p {
			t.Errorf("%+v: decoded %+v", want, got)
		}
		if back, err := Parse(want.EncodedID); err != nil || back != id {
			t.Errorf("Parse(%q) = %d, %v", want.EncodedID, back, err)
		}
	}
}

// The known Go implementation reads its 30 bits of seconds as signed and cannot decode its own IDs
// made after 2041-10-31.
func TestDecodeUntilTheEnd(t *testing.T) {
	c := newCodec(t, "0123456789abcdef")
	for _, p := range []Parts{
		{Time: time.Unix(Epoch, 0)},
		{Time: time.Date(2041, 10, 31, 23, 59, 59, 0, time.UTC), Node: MaxNode},
		{Time: time.Unix(Epoch+1<<29, 0), Sequence: 1},
		{Time: time.Date(2058, 11, 5, 17, 10, 23, 0, time.UTC), Node: MaxNode, Sequence: MaxSequence},
	} {
		p.Time = p.Time.UTC()
		id, err := c.Encode(p)
		if err != nil {
			t.Errorf("%+v: %v", p, err)
		} else if got := c.Decode(id); got != p {
			t.Errorf("%+v decodes to %+v", p, got)
		}
	}
}

func TestEncodeTruncatesFractions(t *testing.T) {
	c := newCodec(t, "0123456789abcdef")
	at := time.Unix(Epoch+5, 999_999_999)
	id, err := c.Encode(Parts{Time: at, Node: 3, Sequence: 4})
	if got, want := c.Decode(id), (Parts{Time: time.Unix(Epoch+5, 0).UTC(), Node: 3, Sequence: 4}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestEncodeRefuses(t *testing.T) {
	c := newCodec(t, "0123456789abcdef")
	now := time.Unix(Epoch+1, 0)
	for _, tt := range []struct {
		name string
		p    Parts
		want error
	}{
		{"1970", Parts{Time: time.Unix(0, 0)}, ErrBeforeEpoch},
		{"year 1", Parts{}, ErrBeforeEpoch},
		{"the second before the epoch", Parts{Time: time.Unix(Epoch-1, 999_999_999)}, ErrBeforeEpoch},
		{"the second after the end", Parts{Time: time.Unix(EndOfLife, 0)}, ErrEndOfLife},
		{"the largest time", Parts{Time: time.Unix(math.MaxInt64, 0)}, ErrEndOfLife},
		{"another 2^30 seconds later", Parts{Time: time.Unix(EndOfLife+1<<30, 0)}, ErrEndOfLife},
		{"node", Parts{Time: now, Node: MaxNode + 1}, ErrInvalidParts},
		{"sequence", Parts{Time: now, Sequence: MaxSequence + 1}, ErrInvalidParts},
	} {
		if id, err := c.Encode(tt.p); !errors.Is(err, tt.want) || id != 0 {
			t.Errorf("%s: %v, %v; want %v", tt.name, id, err, tt.want)
		}
	}
}

func TestSecretSize(t *testing.T) {
	for _, n := range []int{0, 1, 15, 17, 32} {
		c, err := NewCodec(make([]byte, n))
		var size sparx64.KeySizeError
		if c != nil || !errors.As(err, &size) || int(size) != n {
			t.Errorf("a secret of %d bytes: %v, %v", n, c, err)
		}
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	const secret = "SeCrEt0123456789"
	c := newCodec(t, secret)
	if got := fmt.Sprint(c, *c); got != "randflake.Codec(hidden) randflake.Codec(hidden)" {
		t.Errorf("printed %q", got)
	}
	g, err := NewGenerator(c, Lease{Nodes: 8, Start: time.Unix(Epoch, 0), End: time.Unix(Epoch+1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{} // the output must be the same under both secrets
	for _, c := range []*Codec{c, newCodec(t, "another secret!!")} {
		var out strings.Builder
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", c)
			fmt.Fprintf(&out, verb+"\n", *c)
		}
		j, err := json.Marshal(c)
		fmt.Fprintf(&out, "%s %v\n", j, err)
		var logs bytes.Buffer
		noTime := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}
		slog.New(slog.NewTextHandler(&logs, noTime)).Info("x", "codec", c, "value", *c)
		slog.New(slog.NewJSONHandler(&logs, noTime)).Info("x", "codec", c, "value", *c)
		out.Write(logs.Bytes())
		shown[out.String()] = true
	}
	if len(shown) != 1 {
		t.Errorf("the output depends on the secret: %v", shown)
	}
	for _, verb := range []string{"%v", "%+v"} {
		if s := fmt.Sprintf(verb, g); strings.Contains(s, secret) || strings.Contains(s, "0x53") {
			t.Errorf("%s of a generator: %s", verb, s)
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

func TestTextRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		want := ID(r.Uint64() >> r.IntN(64))
		if got, err := Parse(want.String()); err != nil || got != want {
			t.Fatalf("Parse(%q) = %d, %v; want %d", want, got, err, want)
		}
	}
	type record struct {
		ID  ID
		Map map[ID]int
	}
	in := record{ID: math.MaxUint64, Map: map[ID]int{1 << 63: 1}}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"ID":"fvvvvvvvvvvvv","Map":{"8000000000000":1}}`; string(data) != want {
		t.Errorf("JSON %s, want %s", data, want)
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
	f.Fuzz(func(t *testing.T, secret []byte, second uint64, node, sequence uint32) {
		c, err := NewCodec(secret)
		if err != nil {
			return
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
