package sparx64

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

func withBackend(b *backend, f func()) {
	defer func(was *backend) { using = was }(using)
	using = b
	f()
}

// eachBackend runs a test through every backend of this build.
func eachBackend(t *testing.T, f func(t *testing.T)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			if !b.have {
				t.Skip("this processor does not support it")
			}
			withBackend(b, func() { f(t) })
		})
	}
}

func TestFastestBackendIsInUse(t *testing.T) {
	for _, name := range []string{"AVX-512", "NEON", "AVX2", "portable"} { // the fastest first
		for _, b := range backends {
			if b.name == name && b.have {
				if using != b {
					t.Errorf("%s is in use, want %s", using.name, name)
				}
				return
			}
		}
	}
	t.Error("no backend")
}

// Single blocks, which portable code encrypts and TestKnownAnswers checks, are the reference.
func TestBatchIsTheSameAsOneByOne(t *testing.T) {
	lengths := []int{4095, 4096, 4097, 4096 + 37, 3*4096 + 63} // assembly processes these in parts
	for n := range 258 {
		lengths = append(lengths, n)
	}
	r := rand.New(rand.NewPCG(5, 6))
	if os.Getenv("TRACEFLAKE_NIGHTLY") != "" { // more cases, with different random values each time
		r, lengths = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), slices.Repeat(lengths, 500)
	}
	eachBackend(t, func(t *testing.T) {
		for _, n := range lengths {
			c := randomCipher(t, r)
			plain, sealed := make([]uint64, n), make([]uint64, n)
			for i := range plain {
				plain[i] = block(r)
				sealed[i] = c.EncryptUint64(plain[i])
				if opened := c.DecryptUint64(sealed[i]); opened != plain[i] {
					t.Fatalf("%016x encrypts to %016x, which decrypts to %016x", plain[i], sealed[i], opened)
				}
			}
			checkAliasing(t, c, plain, sealed)
		}
	})
}

// checkAliasing encrypts with every allowed layout of its slices, between words that must not
// change.
func checkAliasing(t *testing.T, c *Cipher, from, to []uint64) {
	t.Helper()
	n := len(from)
	const guard = 0xdead
	check := func(layout string, size, dst, src int) {
		t.Helper()
		got := slices.Repeat([]uint64{guard}, size)
		copy(got[src:], from)
		want := slices.Clone(got)
		copy(want[dst:], to)
		c.EncryptUint64s(got[dst:], got[src:src+n]) // dst is longer than src
		checkWords(t, layout, got, want)
	}
	for shift := range 4 { // alignments of a word in a register
		check("in place", n+8, shift, shift)
		check("apart", 2*n+16, shift, n+8)
		check("apart", 2*n+16, n+8, shift)
		check("into the next words", 2*n+8, shift+n, shift)
		check("from the next words", 2*n+8, shift, shift+n)
	}
}

func checkWords(t *testing.T, what string, got, want []uint64) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s, word %d of %d: %016x, want %016x", what, i, len(want), got[i], want[i])
		}
	}
}

func TestBatchMisusePanics(t *testing.T) {
	eachBackend(t, func(t *testing.T) {
		c := mustCipher(t, make([]byte, KeySize))
		words := make([]uint64, 128)
		for _, n := range []int{1, 8, 40} {
			panics(t, "short output", "output smaller than input", func() { c.EncryptUint64s(words[:n-1], words[64:64+n]) })
			for shift := 1; shift < n; shift++ {
				panics(t, "overlap", "invalid buffer overlap", func() { c.EncryptUint64s(words[:n], words[shift:shift+n]) })
				panics(t, "overlap", "invalid buffer overlap", func() { c.EncryptUint64s(words[shift:shift+n], words[:n]) })
			}
		}
		c.EncryptUint64s(nil, nil)
		c.EncryptUint64s(words[:4], nil)
	})
}
