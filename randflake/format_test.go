package randflake

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/vectors"
	"github.com/traceflake/traceflake/sparx64"
)

// vector is a known answer.
type vector struct {
	Name, Secret, Word, ID, Text, Wrong string
	UnixS                               int64 `json:"unix_s"`
	Node, Sequence                      int64
}

type format struct {
	Cipher      []struct{ Key, Plaintext, Ciphertext string }
	Randflake   []vector
	NoRandflake []vector `json:"no_randflake"`
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
	return Parts{Time: time.Unix(v.UnixS, 0).UTC(), Node: uint32(v.Node),
		Sequence: uint32(v.Sequence)}
}

func TestFormat(t *testing.T) {
	f := vectors.Read[format](t)
	for _, v := range f.Cipher {
		c, err := sparx64.NewCipher(unhex(t, v.Key))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, sparx64.BlockSize)
		if c.Encrypt(got, unhex(t, v.Plaintext)); hex.EncodeToString(got) != v.Ciphertext {
			t.Errorf("cipher: %x, want %s", got, v.Ciphertext)
		}
	}
	for _, v := range f.Randflake {
		c := newCodec(t, string(unhex(t, v.Secret)))
		within := v.parts()
		within.Time = within.Time.Add(999_999_999) // which is truncated
		id, err := c.Encode(within)
		got, word := fmt.Sprintf("%016x", uint64(id)), fmt.Sprintf("%016x", c.decrypt(id))
		if err != nil || got != v.ID || id.String() != v.Text || word != v.Word {
			t.Errorf("%s: %s, %s of word %s, %v; want %s, %s of %s", v.Name, got, id, word, err,
				v.ID,
				v.Text, v.Word)
		}
		if got := c.Decode(id); got != v.parts() {
			t.Errorf("%s: decodes to %+v", v.Name, got)
		}
		if back, err := Parse(v.Text); err != nil || back != id {
			t.Errorf("%s: Parse: %d, %v", v.Name, back, err)
		}
	}
	c := newCodec(t, testSecret)
	for _, v := range f.NoRandflake {
		if min(v.Node, v.Sequence) < 0 || max(v.Node, v.Sequence) > math.MaxUint32 {
			continue // not a uint32
		}
		want := "invalid parts"
		if v.Wrong == "time" {
			if want = ErrBeforeEpoch.Error(); v.UnixS > Epoch {
				want = ErrEndOfLife.Error()
			}
		}
		if id, err := c.Encode(v.parts()); id != 0 || err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %v", v.Name, id, err, want)
		}
	}
}
