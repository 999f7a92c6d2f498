// Package reportstest collects reports for tests.
package reportstest

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/internal/reports"
)

// Collect returns a function that returns the errors passed to [otel.Handle] so far, once those of
// all queues have arrived. It ends with the test. OpenTelemetry has one handler per process, so
// such tests do not run in parallel.
func Collect(tb testing.TB) (all func() []error) {
	tb.Helper()
	delivered := func() {
		for end := time.Now().Add(10 * time.Second); reports.Delivering() > 0; {
			if runtime.Gosched(); time.Now().After(end) {
				tb.Fatal("a report was not delivered")
			}
		}
	}
	delivered() // those of earlier tests
	var mu sync.Mutex
	var errs []error
	old := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}))
	tb.Cleanup(func() { delivered(); otel.SetErrorHandler(old) })
	return func() []error {
		delivered()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(errs)
	}
}
