//go:build (amd64 || arm64) && !purego

package sparx64

import (
	"math"
	"slices"
)

// backend is an implementation of batch encryption.
type backend struct {
	name string
	// have reports whether this processor supports the backend.
	have bool
	// width is a number of blocks; the assembly takes any multiple of it.
	width int
	// worthwhile is the least number of blocks for which padding to width and discarding the
	// excess is faster than encrypting them one by one.
	worthwhile int
}

var portable = &backend{name: "portable", have: true, width: math.MaxInt, worthwhile: math.MaxInt}

// using is the fastest backend. Only tests change it, to test all of them.
var using = backends[slices.IndexFunc(backends, func(b *backend) bool { return b.have })]

// atOnce limits the time in assembly, which a garbage collection cannot interrupt, to about ten
// microseconds. It is a multiple of every width.
const atOnce = 4096

func encryptBatch(s *schedule, dst, src []uint64) {
	width, worthwhile := using.width, using.worthwhile
	for len(src) >= width {
		n := min(len(src)/width*width, atOnce)
		encryptBlocks(s, &dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	if len(src) >= worthwhile {
		var blocks [maxWidth]uint64
		copy(blocks[:], src)
		encryptBlocks(s, &blocks[0], &blocks[0], width)
		copy(dst, blocks[:])
		return
	}
	encryptPortable(s, dst, src)
}
