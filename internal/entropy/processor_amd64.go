//go:build !purego

package entropy

import "golang.org/x/sys/cpu"

// ticks reads the time-stamp counter.
func ticks() uint64

// rdrand reads a word of the processor's generator, which no snapshot contains.
// ok is false if it has none at this moment.
func rdrand() (word uint64, ok bool)

// random returns words of the processor's generator. A word that it does not
// deliver within ten tries, as Intel advises, stays 0.
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
