//go:build !purego

package sparx64

import "golang.org/x/sys/cpu"

var (
	avx512 = &backend{
		name:       "AVX-512",
		have:       cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2,
		width:      maxWidth,
		worthwhile: 4,
	}
	avx2 = &backend{
		name:       "AVX2",
		have:       cpu.X86.HasAVX2,
		width:      32,
		worthwhile: 5,
	}
	backends = []*backend{avx512, avx2, portable}
)

// maxWidth is the largest width of a backend.
const maxWidth = 64

// encryptBlocks encrypts n blocks, a multiple of using.width.
func encryptBlocks(keys *schedule, dst, src *uint64, n int) {
	if using == avx512 {
		encryptAVX512(keys, dst, src, n)
	} else {
		encryptAVX2(keys, dst, src, n)
	}
}

// batch_amd64.s is generated: see the target asm of the Makefile.

//go:noescape
func encryptAVX512(keys *schedule, dst, src *uint64, n int)

//go:noescape
func encryptAVX2(keys *schedule, dst, src *uint64, n int)
