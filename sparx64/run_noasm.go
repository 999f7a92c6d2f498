//go:build !(amd64 || arm64) || purego

package sparx64

func encryptRun(s *schedule, dst []uint64, first uint64) { encryptPortable(s, dst, first) }
