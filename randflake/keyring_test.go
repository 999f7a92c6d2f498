package randflake

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	secretA = "dffd6021bb2bd5b0af676290809ec3a5"
	secretB = "00112233445566778899aabbccddeeff"
)

// Secrets may be on lines, or on one line as in an environment variable.
func TestKeyring(t *testing.T) {
	var k *Keyring
	for _, text := range []string{
		"# two\n" + secretA + " \t" + secretB,
		"# since spring\r\n  " + strings.ToUpper(secretA) + " \r\n\n" + secretB,
	} {
		var err error
		if k, err = ParseKeyring(text); err != nil || len(k.Codecs()) != 2 ||
			k.Codec() != k.Codecs()[0] {
			t.Fatalf("%d secrets, want 2, the first for new IDs; %v", len(k.Codecs()), err)
		}
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

// A secret is valid from the first time of its life until the last one is over. A keyring with
// another secret leaves the first one as it is.
func TestLives(t *testing.T) {
	from := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	until := from.Add(time.Hour)
	a, err := NewCodec(unhex(t, secretA))
	b, err2 := NewCodec(unhex(t, secretB))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	one := NewKeyring(a)
	k := one.With(b, from, until)
	_ = one.With(a, from, until)
	numbers := func(at time.Time) (all []int) {
		for i, c := range k.At(at) {
			if c != k.Codecs()[i] {
				t.Errorf("the secret %d is another one", i)
			}
			all = append(all, i)
		}
		return all
	}
	const ms = time.Millisecond
	for at, want := range map[time.Time][]int{
		from.Add(-ms): {0}, from: {0, 1}, until.Add(-ms): {0, 1}, until: {0},
	} {
		if got := numbers(at); !slices.Equal(got, want) {
			t.Errorf("at %s: %v, want %v", at, got, want)
		}
	}
	for range (*Keyring)(nil).At(from) {
		t.Error("a nil keyring has a secret")
	}
	for range k.At(from) {
		break
	}
}

func TestParseKeyringRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "no secret",
		"# one\n\n":                        "no secret",
		secretA + "\n" + secretB[:31]:      "line 2 has a secret of 31 characters",
		secretA + secretB:                  "line 1 has a secret of 64 characters",
		"\n" + secretA[:31] + "x":          "line 2 has a character that is not a hex digit",
		secretA + " # old":                 "line 1 has a secret of 1 characters",
		strings.Repeat("0", 32):            "line 1 has a secret of zeros",
		many(2) + strings.ToUpper(many(1)): "line 3 repeats a secret of line 1",
		secretA + " " + secretA:            "line 1 repeats a secret of line 1",
		many(64):                           "",
		many(65):                           "line 65 has one secret too many",
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
