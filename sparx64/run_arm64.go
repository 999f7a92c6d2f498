//go:build !purego

package sparx64

// Every arm64 processor that Go supports has NEON. Eight blocks in portable code take more than
// twice the instructions of one full batch.
var (
	neon     = &backend{name: "NEON", have: true, width: maxWidth, worthwhile: 8}
	backends = []*backend{neon, portable}
)

// maxWidth is the largest width of a backend.
const maxWidth = 32

// encryptNumbers encrypts n numbers, a multiple of maxWidth; first holds the words of the first
// number. The numbers differ only in their low 16 bits.
//
//go:noescape
func encryptNumbers(keys *schedule, dst *uint64, first *[4]uint16, n int)
