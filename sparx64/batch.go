package sparx64

// encryptBatch encrypts src into dst, which has the same length.
func encryptBatch(s *schedule, dst, src []uint64) {
	for i, block := range src {
		dst[i] = s.encrypt(block)
	}
}

// decryptBatch decrypts src into dst, which has the same length.
func decryptBatch(s *schedule, dst, src []uint64) {
	for i, block := range src {
		dst[i] = s.decrypt(block)
	}
}
