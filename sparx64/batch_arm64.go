//go:build !purego

package sparx64

// useAssembly never changes but in tests, which try the portable code, too.
// Every processor that Go runs on as arm64 has the instructions.
var useAssembly = true

// worthwhile is the number of blocks from which it should be faster to fill up
// to width, and to throw the excess away, than to go one by one: eight blocks
// in portable code are more than twice the instructions of one filled batch.
const worthwhile = 8
