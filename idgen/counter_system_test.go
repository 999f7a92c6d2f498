//go:build (amd64 || arm64) && !purego && !nocounter

package idgen

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// A processor has a counter if it reports one: arm64 always does, and amd64 does with a flag that
// Linux shows too.
func TestSystemCounterIsFound(t *testing.T) {
	want := true
	if runtime.GOARCH == "amd64" {
		info, err := os.ReadFile("/proc/cpuinfo")
		if err != nil {
			t.Skip("only Linux shows whether there should be a counter: ", err)
		}
		want = strings.Contains(string(info), " nonstop_tsc")
	}
	if got := systemGate() != 0; got != want {
		t.Errorf("a counter was found: %v, want %v", got, want)
	}
}
