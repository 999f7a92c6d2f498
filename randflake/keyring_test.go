package randflake

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	secretA = "dffd6021bb2bd5b0af676290809ec3a5"
	secretB = "00112233445566778899aabbccddeeff"
)

func TestKeyring(t *testing.T) {
	k, err := ParseKeyring("# since spring\r\n  " + strings.ToUpper(secretA) + " \r\n\n" + secretB)
	if err != nil || len(k.Codecs()) != 2 || k.Codec() != k.Codecs()[0] {
		t.Fatalf("%d secrets, want 2, the first for new IDs; %v", len(k.Codecs()), err)
	}
	if n := testing.AllocsPerRun(10, func() { k.Codecs() }); n != 0 {
		t.Errorf("Codecs, which each verification calls, allocates %v times", n)
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
			if line = strings.TrimSpace(line); len(line) > 8 && line[0] != '#' &&
				strings.Contains(fmt.Sprint(err), line[:8]) {
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
