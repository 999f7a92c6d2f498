//go:build !purego

package sparx64

import "golang.org/x/sys/cpu"

// The assembly is generated: see the target asm of the Makefile.

// useAVX2 never changes but in tests, which try the portable code, too.
var useAVX2 = cpu.X86.HasAVX2

const (
	// width is the number of blocks that the assembly has in flight.
	width = 32
	// worthwhile is the number of blocks from which it is faster to fill up to
	// width, and to throw the excess away, than to go one by one.
	worthwhile = 5
	// atOnce bounds the time in assembly, which a garbage collection cannot
	// interrupt, to some ten microseconds.
	atOnce = 4096
)

// encryptAVX2 encrypts n blocks, a multiple of width.
//
//go:noescape
func encryptAVX2(keys *schedule, dst, src *uint64, n int)

// decryptAVX2 decrypts n blocks, a multiple of width.
//
//go:noescape
func decryptAVX2(keys *schedule, dst, src *uint64, n int)

func encryptBatch(s *schedule, dst, src []uint64) {
	for useAVX2 && len(src) >= width {
		n := min(len(src)/width*width, atOnce)
		encryptAVX2(s, &dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	if useAVX2 && len(src) >= worthwhile {
		var blocks [width]uint64
		copy(blocks[:], src)
		encryptAVX2(s, &blocks[0], &blocks[0], width)
		copy(dst, blocks[:])
		return
	}
	encryptPortable(s, dst, src)
}

func decryptBatch(s *schedule, dst, src []uint64) {
	for useAVX2 && len(src) >= width {
		n := min(len(src)/width*width, atOnce)
		decryptAVX2(s, &dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	if useAVX2 && len(src) >= worthwhile {
		var blocks [width]uint64
		copy(blocks[:], src)
		decryptAVX2(s, &blocks[0], &blocks[0], width)
		copy(dst, blocks[:])
		return
	}
	decryptPortable(s, dst, src)
}
