package sparx64

import "math/bits"

// encrypt is the cipher as the paper describes it: eight steps, each with three rounds of SPECKEY
// on both branches and one linear layer, then whitening. The branches are interleaved, so that the
// processor runs them in parallel.
func (s *schedule) encrypt(block uint64) uint64 {
	x0, x1, x2, x3 := split(block)
	for i := 0; i < steps*branches*subkeys; i += branches * subkeys {
		k := (*[branches * subkeys]uint16)(s[i:])

		x0 = bits.RotateLeft16(x0^k[0], 9)
		x2 = bits.RotateLeft16(x2^k[6], 9)
		x1 ^= k[1]
		x3 ^= k[7]
		x0 += x1
		x2 += x3
		x1 = bits.RotateLeft16(x1, 2) ^ x0
		x3 = bits.RotateLeft16(x3, 2) ^ x2

		x0 = bits.RotateLeft16(x0^k[2], 9)
		x2 = bits.RotateLeft16(x2^k[8], 9)
		x1 ^= k[3]
		x3 ^= k[9]
		x0 += x1
		x2 += x3
		x1 = bits.RotateLeft16(x1, 2) ^ x0
		x3 = bits.RotateLeft16(x3, 2) ^ x2

		x0 = bits.RotateLeft16(x0^k[4], 9)
		x2 = bits.RotateLeft16(x2^k[10], 9)
		x1 ^= k[5]
		x3 ^= k[11]
		x0 += x1
		x2 += x3
		x1 = bits.RotateLeft16(x1, 2) ^ x0
		x3 = bits.RotateLeft16(x3, 2) ^ x2

		t := bits.RotateLeft16(x0^x1, 8)
		x0, x1, x2, x3 = x2^x0^t, x3^x1^t, x0, x1
	}
	w := (*[4]uint16)(s[steps*branches*subkeys:])
	return join(x0^w[0], x1^w[1], x2^w[2], x3^w[3])
}

// decrypt reverses encrypt, from the last step to the first.
func (s *schedule) decrypt(block uint64) uint64 {
	x0, x1, x2, x3 := split(block)
	w := (*[4]uint16)(s[steps*branches*subkeys:])
	x0, x1, x2, x3 = x0^w[0], x1^w[1], x2^w[2], x3^w[3]
	for i := (steps - 1) * branches * subkeys; i >= 0; i -= branches * subkeys {
		k := (*[branches * subkeys]uint16)(s[i:])

		t := bits.RotateLeft16(x2^x3, 8)
		x0, x1, x2, x3 = x2, x3, x0^x2^t, x1^x3^t

		x1 = bits.RotateLeft16(x1^x0, -2)
		x3 = bits.RotateLeft16(x3^x2, -2)
		x0 = bits.RotateLeft16(x0-x1, -9) ^ k[4]
		x2 = bits.RotateLeft16(x2-x3, -9) ^ k[10]
		x1 ^= k[5]
		x3 ^= k[11]

		x1 = bits.RotateLeft16(x1^x0, -2)
		x3 = bits.RotateLeft16(x3^x2, -2)
		x0 = bits.RotateLeft16(x0-x1, -9) ^ k[2]
		x2 = bits.RotateLeft16(x2-x3, -9) ^ k[8]
		x1 ^= k[3]
		x3 ^= k[9]

		x1 = bits.RotateLeft16(x1^x0, -2)
		x3 = bits.RotateLeft16(x3^x2, -2)
		x0 = bits.RotateLeft16(x0-x1, -9) ^ k[0]
		x2 = bits.RotateLeft16(x2-x3, -9) ^ k[6]
		x1 ^= k[1]
		x3 ^= k[7]
	}
	return join(x0, x1, x2, x3)
}

// encryptPortable encrypts consecutive numbers. Like [schedule.encrypt], it is the reference for
// all faster backends.
func encryptPortable(s *schedule, dst []uint64, first uint64) {
	for i := range dst {
		dst[i] = bits.ReverseBytes64(s.encrypt(bits.ReverseBytes64(first + uint64(i))))
	}
}

func split(block uint64) (x0, x1, x2, x3 uint16) {
	return uint16(block >> 48), uint16(block >> 32), uint16(block >> 16), uint16(block)
}

func join(x0, x1, x2, x3 uint16) uint64 {
	return uint64(x0)<<48 | uint64(x1)<<32 | uint64(x2)<<16 | uint64(x3)
}
