//go:build !purego

package entropy

import "golang.org/x/sys/cpu"

// ticks reads the time-stamp counter.
func ticks() uint64

// rdrand reads a word of the processor's random number generator, which no snapshot contains. It
// returns 0 if none is available at this moment.
func rdrand() (word uint64)

// random returns four words of the processor's random number generator. A word that is not
// delivered within ten tries, as Intel advises, stays 0.
func random() (words [4]uint64) {
	for i := range 10 * len(words) {
		if w := &words[i%len(words)]; *w == 0 && cpu.X86.HasRDRAND {
			*w = rdrand()
		}
	}
	return words
}
