//go:build !purego && !nocounter

package idgen

// readCounter reads the time-stamp counter. It does not wait for earlier instructions: a few
// nanoseconds do not matter here.
func readCounter() uint64

func cpuid(leaf uint32) (eax, edx uint32)

// systemGate returns 2^17 ticks, which are 50 µs at 2.6 GHz and 131 µs at 1 GHz, if the processor
// reports that the counter's rate never changes and that it does not stop in any idle state.
func systemGate() uint32 {
	const features, power, invariant = 0x80000000, 0x80000007, 1 << 8
	if last, _ := cpuid(features); last < power {
		return 0
	}
	if _, edx := cpuid(power); edx&invariant == 0 {
		return 0
	}
	return 1 << 17
}
