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

// encryptBlocks encrypts n blocks, a multiple of maxWidth.
//
//go:noescape
func encryptBlocks(keys *schedule, dst, src *uint64, n int)
