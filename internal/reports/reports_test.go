package reports

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
)

var errOutage, errRecovered = errors.New("outage"), errors.New("recovered")

// Reports arrive in their order, and Add never waits for the handler. While it blocks, at most Most
// wait, and outages that are discarded are discarded with their end.
func TestOrder(t *testing.T) {
	for _, c := range []struct{ pairs, least, most int }{{Most / 2, Most, Most},
		{1000, 2, Most + 2}} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan bool)
			var got []error
			q := Queue{Handle: func(err error) {
				<-release
				got = append(got, err)
			}}
			for range c.pairs {
				q.Add(errOutage)
				if c.pairs > Most {
					synctest.Wait() // the handler gets the first report
				}
				q.Add(errRecovered)
			}
			synctest.Wait()
			if n := len(q.waiting); n > Most {
				t.Errorf("%d reports wait, want at most %d", n, Most)
			}
			close(release)
			synctest.Wait()
			q.Add(errOutage) // after the goroutine has ended
			q.Add(errRecovered)
			synctest.Wait()
			for i, err := range got {
				if want := []error{errOutage, errRecovered}[i%2]; !errors.Is(err, want) {
					t.Errorf("report %d: %v, want %v", i, err, want)
				}
			}
			if n := len(got) - 2; n < c.least || n > c.most || n%2 != 0 || len(q.waiting) != 0 {
				t.Errorf("%d pairs: %d reports were delivered and %d wait, want %d to %d and 0",
					c.pairs, n, len(q.waiting), c.least, c.most)
			}
		})
	}
}

// Flush waits for the handler, but not for long if it blocks.
func TestFlush(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{0: 0, Last / 2: Last / 2,
		time.Hour: Last} {
		synctest.Test(t, func(t *testing.T) {
			q := Queue{Handle: func(error) { time.Sleep(takes) }}
			q.Add(errOutage)
			began := time.Now()
			if q.Flush(); time.Since(began) != want {
				t.Errorf("it took %s, want %s", time.Since(began), want)
			}
			time.Sleep(takes) // the handler ends
		})
	}
}

// By default reports go to OpenTelemetry's handler.
func TestDefaultHandler(t *testing.T) {
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	got := make(chan error)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { got <- err }))
	var q Queue
	q.Add(errOutage)
	if err := <-got; !errors.Is(err, errOutage) {
		t.Errorf("got %v", err)
	}
}
