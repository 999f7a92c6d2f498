//go:build !purego

package entropy

import "golang.org/x/sys/cpu"

// ticks reads the time-stamp counter.
func ticks() uint64

// rdrand reads a word of the processor's random number generator, which no
// snapshot contains. ok is false if none is available at this moment.
func rdrand() (word uint64, ok bool)

// random returns four such words. One that is not delivered within ten tries, as
// many as Intel advises, stays 0.
func random() (words [4]uint64) {
	if !cpu.X86.HasRDRAND {
		return words
	}
	for i := range words {
		for range 10 {
			word, ok := rdrand()
			if ok {
				words[i] = word
				break
			}
		}
	}
	return words
}
