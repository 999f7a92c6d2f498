package idgen

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/internal/reports"
)

// collectErrors returns a function that returns the errors passed to otel.Handle so far, once all
// of them have arrived. OpenTelemetry has one handler per process, so such tests do not run in
// parallel.
func collectErrors(t *testing.T) (all func() []error) {
	var mu sync.Mutex
	var errs []error
	old := otel.GetErrorHandler()
	delivered := func() { // by goroutines that end
		for end := time.Now().Add(10 * time.Second); reports.Delivering() > 0; {
			if runtime.Gosched(); time.Now().After(end) {
				t.Fatal("a report was not delivered")
			}
		}
	}
	t.Cleanup(func() { delivered(); otel.SetErrorHandler(old) })
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}))
	return func() []error {
		delivered()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(errs)
	}
}

// raceEnabled reports whether the race detector is on.
var raceEnabled = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()
