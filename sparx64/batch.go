package sparx64

// encryptPortable encrypts src into dst, which has the same length. Like [schedule.encrypt], it is
// the reference for all faster backends.
func encryptPortable(s *schedule, dst, src []uint64) {
	for i, block := range src {
		dst[i] = s.encrypt(block)
	}
}
