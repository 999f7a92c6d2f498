//go:build !purego

package sparx64

import "golang.org/x/sys/cpu"

// batch_amd64.s is generated: see the target asm of the Makefile.

// useAssembly never changes but in tests, which try the portable code, too.
var useAssembly = cpu.X86.HasAVX2

// worthwhile is the number of blocks from which it is faster to fill up to
// width, and to throw the excess away, than to go one by one.
const worthwhile = 5
