//go:build !(amd64 || arm64) || purego || nocounter

package idgen

import "testing"

// TestTimeUnderLoad shows that the clock is read instead.
func TestNoCounter(t *testing.T) {
	if systemCounter().read != nil || !New().clock.wrong.Load() {
		t.Error("a counter was found")
	}
}
