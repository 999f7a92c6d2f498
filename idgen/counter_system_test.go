//go:build (amd64 || arm64) && !purego && !nocounter

package idgen

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
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
	if got := systemCounter().read != nil; got != want {
		t.Errorf("a counter was found: %v, want %v", got, want)
	}
}

func TestSystemCounterIsUsed(t *testing.T) {
	g := New()
	if g.clock.wrong.Load() {
		t.Skip("this processor has no counter: see TestSystemCounterIsFound")
	}
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		g.NewIDs(t.Context())
		g.NewSpanID(t.Context(), trace.TraceID{})
	}
	if g.clock.rate.Load() == 0 || g.clock.wrong.Load() {
		t.Errorf("rate %d, wrong %v", g.clock.rate.Load(), g.clock.wrong.Load())
	}
}
