//go:build !purego && !nocounter

package idgen

// readCounter reads the time-stamp counter. It does not wait for earlier instructions: a few
// nanoseconds do not matter here.
func readCounter() uint64

func cpuid(leaf uint32) (eax, edx uint32)

// systemCounter is the time-stamp counter, if the processor says that its rate never changes and
// that it does not stop in any idle state.
func systemCounter() counter {
	const features, power, invariant = 0x80000000, 0x80000007, 1 << 8
	if last, _ := cpuid(features); last < power {
		return counter{}
	}
	if _, edx := cpuid(power); edx&invariant == 0 {
		return counter{}
	}
	return counter{read: readCounter, slowest: 0.5e6, fastest: 10e6} // 0.5 to 10 GHz
}
