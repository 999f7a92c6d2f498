package rowtest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// verdicts is a test that is expected to fail.
type verdicts struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	said   string
}

func (v *verdicts) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = true
	if len(v.said) < 10_000 {
		v.said += fmt.Sprintf(format, args...) + "\n"
	}
}

func (v *verdicts) Failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

func (v *verdicts) Helper()                           {}
func (v *verdicts) Logf(string, ...any)               {}
func (v *verdicts) Error(args ...any)                 { v.Errorf("%s", fmt.Sprint(args...)) }
func (v *verdicts) FailNow()                          { v.Errorf("failed"); runtime.Goexit() }
func (v *verdicts) Fatal(args ...any)                 { v.Error(args...); runtime.Goexit() }
func (v *verdicts) Fatalf(format string, args ...any) { v.Errorf(format, args...); runtime.Goexit() }

func judged(tb testing.TB, run func(tb testing.TB)) *verdicts {
	v := &verdicts{TB: tb}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(v)
	}()
	<-done
	return v
}
