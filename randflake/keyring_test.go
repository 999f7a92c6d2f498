package randflake_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/traceflake/traceflake/randflake"
)

const (
	secretA = "dffd6021bb2bd5b0af676290809ec3a5"
	secretB = "00112233445566778899aabbccddeeff"
)

func TestParseKeyring(t *testing.T) {
	k, err := randflake.ParseKeyring(strings.NewReader("# makes IDs since spring\r\n  " + strings.ToUpper(secretA) + " \r\n\n" + secretB))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(k.Codecs()); n != 2 {
		t.Fatalf("%d secrets, want 2", n)
	}
	if first := k.Codecs()[0].Derive("x"); first[0] != 0x9b || first == k.Codecs()[1].Derive("x") {
		t.Errorf("the first secret derives %x, the second %x", first, k.Codecs()[1].Derive("x"))
	}
	if k.Codec() != k.Codecs()[0] {
		t.Error("the first secret does not make the IDs")
	}
	k.Codecs()[0] = nil
	if k.Codec() == nil {
		t.Error("Codecs returns the keyring's own slice")
	}
}

func TestNewKeyring(t *testing.T) {
	secret, _ := hex.DecodeString(secretA)
	c, err := randflake.NewCodec(secret)
	if err != nil {
		t.Fatal(err)
	}
	if k := randflake.NewKeyring(c); k.Codec() != c || len(k.Codecs()) != 1 || k.Codecs()[0] != c {
		t.Errorf("the keyring has %d secrets, want one", len(k.Codecs()))
	}
	for name, k := range map[string]*randflake.Keyring{"nil": nil, "zero": {}, "of nil": randflake.NewKeyring(nil)} {
		if k.Codec() != nil || len(k.Codecs()) != 0 {
			t.Errorf("%s: %d secrets", name, len(k.Codecs()))
		}
	}
	clear(secret) // the codec has a copy
	// Known answer: HKDF-SHA256 of RFC 5869 with no salt and the info "traceflake x".
	if got, want := fmt.Sprintf("%x", c.Derive("x")), "9b56d7be2673f03d0982e953854c72f4a7f4b5f38b8ef8e5f55b34c6bb144f77"; got != want {
		t.Errorf("derived %s, want %s", got, want)
	}
}

func TestParseKeyringRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "no secret"},
		{"only comments", "# one\n\n", "no secret"},
		{"short", secretA + "\n" + secretB[:31], "line 2 has 31 characters"},
		{"long", secretA + secretB, "line 1 has 64 characters"},
		{"no hex", "\n" + secretA[:31] + "x", "line 2 has a character that is not a hex digit"},
		{"comment after a secret", secretA + " # old", "line 1 has 38 characters"},
		{"zeros", strings.Repeat("0", 32), "line 1 is all zeros"},
		{"twice", secretA + "\n" + secretB + "\n" + strings.ToUpper(secretA), "line 3 repeats line 1"},
		{"too many", many(17), "line 17 is one secret too many"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := randflake.ParseKeyring(strings.NewReader(c.text))
			if !errors.Is(err, randflake.ErrInvalidKeyring) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			for line := range strings.Lines(c.text) {
				if line = strings.TrimSpace(line); len(line) > 8 && line[0] != '#' && strings.Contains(err.Error(), line[:8]) {
					t.Errorf("the error shows the secret: %v", err)
				}
			}
		})
	}
	if _, err := randflake.ParseKeyring(strings.NewReader(many(16))); err != nil {
		t.Errorf("16 secrets: %v", err)
	}
	if _, err := randflake.ParseKeyring(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%032x\n", i+1)
	}
	return b.String()
}
