//go:build (amd64 || arm64) && !purego

package sparx64

const (
	// width is the number of blocks that the assembly has in flight.
	width = 32
	// atOnce bounds the time in assembly, which a garbage collection cannot
	// interrupt, to some ten microseconds.
	atOnce = 4096
)

// encryptBlocks encrypts n blocks, a multiple of width.
//
//go:noescape
func encryptBlocks(keys *schedule, dst, src *uint64, n int)

// decryptBlocks decrypts n blocks, a multiple of width.
//
//go:noescape
func decryptBlocks(keys *schedule, dst, src *uint64, n int)

func encryptBatch(s *schedule, dst, src []uint64) {
	for useAssembly && len(src) >= width {
		n := min(len(src)/width*width, atOnce)
		encryptBlocks(s, &dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	if useAssembly && len(src) >= worthwhile {
		var blocks [width]uint64
		copy(blocks[:], src)
		encryptBlocks(s, &blocks[0], &blocks[0], width)
		copy(dst, blocks[:])
		return
	}
	encryptPortable(s, dst, src)
}

func decryptBatch(s *schedule, dst, src []uint64) {
	for useAssembly && len(src) >= width {
		n := min(len(src)/width*width, atOnce)
		decryptBlocks(s, &dst[0], &src[0], n)
		dst, src = dst[n:], src[n:]
	}
	if useAssembly && len(src) >= worthwhile {
		var blocks [width]uint64
		copy(blocks[:], src)
		decryptBlocks(s, &blocks[0], &blocks[0], width)
		copy(dst, blocks[:])
		return
	}
	decryptPortable(s, dst, src)
}
