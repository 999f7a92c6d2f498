//go:build !purego && !nocounter

package idgen

// readCounter reads the virtual counter, whose rate is constant by definition.
func readCounter() uint64

// frequency returns the counter's rate in Hz, as set by the firmware.
func frequency() uint64

func systemCounter() counter {
	perMilli := float64(frequency()) / 1000
	return counter{read: readCounter, slowest: perMilli * (1 - maxDrift), fastest: perMilli * (1 + maxDrift)}
}
