package randflake

import (
	"encoding/json"
	"fmt"
	"log/slog"
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
			part := strings.Trim(fmt.Sprintf(form, []byte(secret)[:4]), "[]byte{}")
			if strings.Contains(out.String(), part) {
				t.Errorf("%T shows %q: %s", v, part, out.String())
			}
		}
	}
}

func FuzzCodec(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint64(1), uint32(1), uint32(1))
	f.Add([]byte("0123456789abcde"), uint64(1), uint32(1), uint32(1))
	f.Fuzz(func(t *testing.T, secret []byte, second uint64, node, sequence uint32) {
		c, err := NewCodec(secret)
		if (err != nil) != (len(secret) != sparx64.KeySize) {
			t.Fatal(err)
		} else if err != nil {
			return
		}
		want := Parts{
			Time: timeOf(second % (1 << secondBits)),
			Node: node & MaxNode, Sequence: sequence & maxSequence,
		}
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
