//go:build (amd64 || arm64) && !purego

package sparx64

import (
	"math"
	"math/bits"
	"slices"
)

// backend is an implementation of the encryption of runs.
type backend struct {
	name string
	// have reports whether this processor supports the backend.
	have bool
	// width is a number of numbers; the assembly takes any multiple of it.
	width int
	// worthwhile is how many numbers at least are encrypted faster by padding to width and
	// discarding the excess than one by one.
	worthwhile int
}

var portable = &backend{name: "portable", have: true, width: math.MaxInt, worthwhile: math.MaxInt}

// using is the fastest backend. Only tests change it, to test all of them.
var using = backends[slices.IndexFunc(backends, func(b *backend) bool { return b.have })]

const (
	// atOnce limits the time in assembly, which a garbage collection cannot interrupt, to about ten
	// microseconds. It is a multiple of every width.
	atOnce = 4096
	// inLow is how many numbers have the same bits above the low 16, in which the assembly counts.
	inLow = 1 << 16
)

func encryptRun(s *schedule, dst []uint64, first uint64) {
	for len(dst) > 0 {
		n := min(len(dst), inLow-int(first%inLow), atOnce)
		var words [4]uint16
		words[0], words[1], words[2], words[3] = split(bits.ReverseBytes64(first))
		switch whole := n / using.width * using.width; {
		case whole > 0:
			n = whole
			encryptNumbers(s, &dst[0], &words, n)
		case n >= using.worthwhile:
			var numbers [maxWidth]uint64
			encryptNumbers(s, &numbers[0], &words, using.width)
			copy(dst[:n], numbers[:])
		default:
			encryptPortable(s, dst[:n], first)
		}
		dst, first = dst[n:], first+uint64(n)
	}
}
