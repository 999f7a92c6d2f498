package reports

import (
	"errors"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel"
)

var errOutage, errRecovered = errors.New("outage"), errors.New("recovered")

// Reports arrive in their order, and Add never waits for the handler.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		var got []error
		q := Queue{Handle: func(err error) {
			<-release
			got = append(got, err)
		}}
		for range Most / 2 {
			q.Add(errOutage)
			q.Add(errRecovered)
		}
		close(release)
		synctest.Wait()
		for i, err := range got {
			if want := []error{errOutage, errRecovered}[i%2]; !errors.Is(err, want) {
				t.Errorf("report %d: %v, want %v", i, err, want)
			}
		}
		if len(got) != Most || q.Waiting() != 0 {
			t.Errorf("%d reports were delivered and %d wait, want %d and 0", len(got), q.Waiting(), Most)
		}
		q.Add(errOutage) // after the goroutine has ended
		if synctest.Wait(); len(got) != Most+1 {
			t.Errorf("%d reports, want %d", len(got), Most+1)
		}
	})
}

// While the handler blocks, at most Most reports wait, and outages that are discarded are discarded
// with their end.
func TestBlockedHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		var got []error
		q := Queue{Handle: func(err error) {
			<-release
			got = append(got, err)
		}}
		for range 1000 {
			q.Add(errOutage)
			synctest.Wait()
			q.Add(errRecovered)
		}
		if n := q.Waiting(); n > Most {
			t.Errorf("%d reports wait, want at most %d", n, Most)
		}
		close(release)
		synctest.Wait()
		for i, err := range got {
			if want := []error{errOutage, errRecovered}[i%2]; !errors.Is(err, want) {
				t.Errorf("report %d: %v, want %v", i, err, want)
			}
		}
		if len(got) < 2 || len(got)%2 != 0 {
			t.Errorf("%d reports, want pairs", len(got))
		}
	})
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
