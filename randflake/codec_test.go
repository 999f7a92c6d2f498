package randflake

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
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
