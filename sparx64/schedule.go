package sparx64

import (
	"encoding/binary"
	"math/bits"
)

const (
	steps    = 8
	branches = 2
	// subkeys of one branch in one step: two words in each of three rounds.
	subkeys = 6
)

// schedule is the expanded key in the order of use: for each step the subkeys of the left branch,
// then those of the right one; at the end the four words that whiten the output.
type schedule [steps*branches*subkeys + 4]uint16

// expand returns the expanded key, by the key schedule K₄^64/128 of the paper.
func expand(key *[KeySize]byte) (s schedule) {
	var k [8]uint16
	for i := range k {
		k[i] = binary.BigEndian.Uint16(key[2*i:])
	}
	for c := 0; c < steps*branches; c++ {
		copy(s[c*subkeys:], k[:subkeys])
		k = permute(k, uint16(c+1))
	}
	copy(s[steps*branches*subkeys:], k[:4])
	return s
}

// permute returns k after one step of the key schedule: a round over the first two words, which are
// then added to the next two; the counter is added to the last word; then all words rotate two
// places to the right.
func permute(k [8]uint16, counter uint16) [8]uint16 {
	l := bits.RotateLeft16(k[0], 9) + k[1]
	r := bits.RotateLeft16(k[1], 2) ^ l
	return [8]uint16{k[6], k[7] + counter, l, r, k[2] + l, k[3] + r, k[4], k[5]}
}
