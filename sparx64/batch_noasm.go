//go:build !(amd64 || arm64) || purego

package sparx64

func encryptBatch(s *schedule, dst, src []uint64) { encryptPortable(s, dst, src) }
