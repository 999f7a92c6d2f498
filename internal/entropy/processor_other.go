//go:build !amd64 || purego

package entropy

func ticks() uint64 { return 0 }

func random() (words [4]uint64) { return words }
