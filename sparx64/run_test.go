package sparx64

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
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

// Single blocks, which portable code encrypts and TestKnownAnswers checks, are the reference. Runs
// are not aligned, begin near a carry in any of their bits or wrap around, and leave the words
// around them unchanged.
func TestRunIsTheSameAsOneByOne(t *testing.T) {
	lengths := []int{4095, 4096, 4097, 4096 + 37, 3*4096 + 63, 1<<16 + 100} // encrypted in parts
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 258 {
		lengths = append(lengths, n, r.IntN(1<<12))
	}
	if os.Getenv("TRACEFLAKETEST_NIGHTLY") != "" { // more cases, with different values each time
		r = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		lengths = slices.Repeat(lengths, 500)
	}
	eachBackend(t, func(t *testing.T) {
		for _, n := range lengths {
			c, first := randomCipher(t, r), block(r)
			if r.IntN(2) == 0 { // carries within the run
				first = bits.RotateLeft64(first, r.IntN(64)) | 0xffff
				first -= uint64(r.IntN(n + 1))
			}
			const guard, around = 0xdead, 8
			before := r.IntN(around) // alignment
			got := slices.Repeat([]uint64{guard}, n+2*around)
			want := slices.Clone(got)
			for i := range n {
				number := bits.ReverseBytes64(first + uint64(i))
				want[before+i] = bits.ReverseBytes64(c.EncryptUint64(number))
				if opened := c.DecryptUint64(c.EncryptUint64(number)); opened != number {
					t.Fatalf("%016x is decrypted to %016x", number, opened)
				}
			}
			encryptNumbersOf(c, got[before:before+n], first)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%d numbers from %#x, word %d: %016x, want %016x",
						n, first, i-before, got[i], want[i])
				}
			}
		}
	})
}

// The fastest backend is in use for which the processor has all instructions: without any one of
// them, another one is. A process of its own makes each choice.
func TestChoice(t *testing.T) {
	const variable = "TRACEFLAKE_CHOICE"
	if os.Getenv(variable) != "" {
		fmt.Println("in use: " + using.name)
		return
	}
	for _, off := range []string{
		"", "avx512f", "avx512bw", "avx512vbmi2", "avx2", "avx2 avx512f", "all",
	} {
		want := ""
		for _, b := range backends { // the fastest first
			needs := strings.Fields(needed[b.name])
			without := slices.ContainsFunc(needs, func(feature string) bool {
				return off == "all" || slices.Contains(strings.Fields(off), feature)
			})
			if b.have && !without {
				want = b.name
				break
			}
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestChoice$")
		var debug []string
		for _, feature := range strings.Fields(off) {
			debug = append(debug, "cpu."+feature+"=off")
		}
		cmd.Env = append(os.Environ(), variable+"=1", "GODEBUG="+strings.Join(debug, ","))
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("this program cannot start itself: it runs in an emulator")
		}
		if err != nil || !strings.Contains(string(out), "in use: "+want+"\n") {
			t.Errorf("without %q: %v: %s, want %s", off, err, out, want)
		}
	}
}

// needed lists the processor's features that a backend's instructions belong to.
var needed = map[string]string{"AVX-512": "avx512f avx512bw avx512vbmi2", "AVX2": "avx2"}
