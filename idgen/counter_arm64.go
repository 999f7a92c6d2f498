//go:build !purego && !nocounter

package idgen

// readCounter reads the virtual counter, whose rate is constant by definition.
func readCounter() uint64

// systemGate returns 2^10 ticks, which are 1 µs at the 1 GHz of Armv8.6, and 131 µs at the lowest
// rate of usual systems, 7.8 MHz. The rate that the firmware reports is not used.
func systemGate() uint32 { return 1 << 10 }
