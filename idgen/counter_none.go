//go:build !(amd64 || arm64) || purego || nocounter

package idgen

func readCounter() uint64 { return 0 }

func systemGate() uint32 { return 0 }
