package sparx64

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var _ cipher.Block = (*Cipher)(nil)

type vector struct{ key, plain, sealed []byte }

// vectors returns the authors' known answer and 128 more from their C reference.
func vectors(t testing.TB) []vector {
	t.Helper()
	f, err := os.Open("testdata/sparx64_128.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []vector
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		fields := strings.Fields(sc.Text())
		if len(fields) != 3 {
			t.Fatalf("a line of %d fields: %q", len(fields), sc.Text())
		}
		out = append(out, vector{unhex(t, fields[0]), unhex(t, fields[1]), unhex(t, fields[2])})
	}
	if len(out) != 129 {
		t.Fatalf("%d vectors, want 129", len(out))
	}
	return out
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustCipher(t testing.TB, key []byte) *Cipher {
	t.Helper()
	c, err := NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Blocks may be encrypted in place.
func TestKnownAnswers(t *testing.T) {
	for _, v := range vectors(t) {
		c := mustCipher(t, v.key)
		got, apart := bytes.Clone(v.plain), make([]byte, BlockSize)
		c.Encrypt(apart, got)
		if c.Encrypt(got, got); !bytes.Equal(got, v.sealed) || !bytes.Equal(apart, v.sealed) {
			t.Errorf("key %x: Encrypt(%x) = %x, in place %x, want %x", v.key, v.plain, apart, got,
				v.sealed)
		}
		c.Decrypt(apart, got)
		if c.Decrypt(got, got); !bytes.Equal(got, v.plain) || !bytes.Equal(apart, v.plain) {
			t.Errorf("key %x: Decrypt(%x) = %x, in place %x, want %x", v.key, v.sealed, apart, got,
				v.plain)
		}
	}
}

func TestKeySize(t *testing.T) {
	for n := 0; n <= 33; n++ {
		c, err := NewCipher(make([]byte, n))
		if n == KeySize {
			if err != nil || c.BlockSize() != BlockSize {
				t.Errorf("a key of %d bytes: %v, block size %d", n, err, c.BlockSize())
			}
			continue
		}
		if c != nil || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", n)) {
			t.Errorf("a key of %d bytes: %v, %v", n, c, err)
		}
	}
}

// edges are words with which errors in carries, signs and byte order show.
var edges = []uint64{
	0, 1, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000,
	0x0123_4567_89ab_cdef, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, 0xffff_ffff_ffff_fffe,
	0xffff_ffff_ffff_ffff,
}

// block returns one of the edges half of the time, and otherwise a random word.
func block(r *rand.Rand) uint64 {
	if r.IntN(2) == 0 {
		return edges[r.IntN(len(edges))]
	}
	return r.Uint64()
}

func randomCipher(t testing.TB, r *rand.Rand) *Cipher {
	var key [KeySize]byte
	binary.BigEndian.PutUint64(key[:], block(r))
	binary.BigEndian.PutUint64(key[8:], block(r))
	return mustCipher(t, key[:])
}

func TestMisusePanics(t *testing.T) {
	c := mustCipher(t, make([]byte, KeySize))
	buf := make([]byte, 32)
	for name, crypt := range map[string]func(dst, src []byte){
		"Encrypt": c.Encrypt, "Decrypt": c.Decrypt,
	} {
		panics(t, name+" of short input", "input not full block", func() {
			crypt(buf[:8], buf[16:23])
		})
		panics(t, name+" of empty input", "input not full block", func() { crypt(buf[:8], nil) })
		panics(t, name+" into short output", "output not full block", func() {
			crypt(buf[:7], buf[16:24])
		})
		for shift := 1; shift < BlockSize; shift++ {
			panics(t, name+" with overlap", "invalid buffer overlap", func() {
				crypt(buf[:8], buf[shift:])
			})
			panics(t, name+" with overlap", "invalid buffer overlap", func() {
				crypt(buf[shift:], buf[:8])
			})
		}
		crypt(buf[:8], buf[8:]) // adjacent blocks do not overlap
	}
}

func panics(t *testing.T, what, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
			t.Errorf("%s: recovered %q, want %q", what, got, want)
		}
	}()
	f()
}

// Logs must not reveal the key.
func TestFormatHidesTheKey(t *testing.T) {
	c := mustCipher(t, []byte("0123456789abcdef"))
	const want = "sparx64.Cipher(hidden)"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		for _, arg := range []any{c, *c} {
			if got := fmt.Sprintf(verb, arg); got != want {
				t.Errorf("%s of %T: %s", verb, arg, got)
			}
		}
	}
	if j, err := json.Marshal(c); err != nil || string(j) != "{}" {
		t.Errorf("as JSON: %s, %v", j, err)
	}
}
