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

// encryptNumbers encrypts n numbers, a multiple of using.width; first holds the words of the first
// number. The numbers differ only in their low 16 bits.
func encryptNumbers(keys *schedule, dst *uint64, first *[4]uint16, n int) {
	if using == avx512 {
		encryptAVX512(keys, dst, first, n)
	} else {
		encryptAVX2(keys, dst, first, n)
	}
}

// run_amd64.s is generated: see the target asm of the Makefile.

//go:noescape
func encryptAVX512(keys *schedule, dst *uint64, first *[4]uint16, n int)

//go:noescape
func encryptAVX2(keys *schedule, dst *uint64, first *[4]uint16, n int)
