package randflake

import "time"

// space is the set of a generator's words for a lease of 2^k aligned nodes:
//
//	second << (17+k) | node offset << 17 | sequence
//
// Nodes are aligned, so that consecutive words of one second are consecutive raw words.
type space struct {
	shift uint   // bits below the second: 17+k
	room  uint64 // words of a second
	node  uint64 // the first node, in its place in the raw word
}

// sealed is not a word of any space: a space ends below it.
const sealed = ^uint64(0)

// word returns the first word of a second. A space of all nodes would have 2^64 words; it ends
// before its last second, so that words never wrap and never reach sealed.
func (s space) word(second uint64) uint64 {
	if s.shift == secondShift {
		second = min(second, 1<<secondBits-1)
	}
	return second << s.shift
}

// second returns the second of a word.
func (s space) second(word uint64) time.Time { return timeOf(word >> s.shift) }

// raw returns the raw word of a word.
func (s space) raw(word uint64) uint64 {
	return word>>s.shift<<secondShift | s.node | word&(s.room-1)
}
