package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// closer is a client that ends when its server answers.
type closer struct {
	driver.Objects
	answers chan error
}

func (c closer) Close() error { return <-c.answers }

// Close waits for a client for half a second. What the client answers in time is the result, also
// of further calls.
func TestCloseIsBounded(t *testing.T) {
	failed := errors.New("the client failed")
	for after, want := range map[time.Duration]time.Duration{ // until the client answers
		time.Millisecond: time.Millisecond, time.Hour: 500 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := make(chan error, 1)
			time.AfterFunc(after, func() { answers <- failed })
			s := client(closer{new(counted), answers}, 2)
			began := time.Now()
			err := s.Close()
			again := s.Close() // at once
			if took := time.Since(began); err == nil || errors.Is(err, failed) != (took == after) ||
				!errors.Is(again, err) || took != want {
				t.Errorf("%v, again %v, after %s, want %s", err, again, took, want)
			}
			time.Sleep(time.Hour)
		})
	}
}

// Close ends the calls in flight, and the client after they have returned. They and later calls
// say that the store is closed.
func TestCloseEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returned, asked := false, 0
		answers := make(chan error)
		hangs := func(ctx context.Context, _ []byte, _ func() error) error {
			asked++
			<-ctx.Done()
			time.Sleep(time.Millisecond)
			returned = true
			return ctx.Err()
		}
		s := client(closer{wire{new(counted), hangs}, answers}, 2)
		go func() {
			answers <- nil
			if !returned {
				t.Error("the client was closed during a call")
			}
		}()
		inFlight := make(chan error)
		go func() {
			_, err := s.Describe(t.Context())
			inFlight <- err
		}()
		synctest.Wait()
		go func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		wantErr(t, "a call in flight", <-inFlight, lease.ErrClosed)
		synctest.Wait()
		_, err := s.Describe(t.Context())
		wantErr(t, "later, CheckRights", s.CheckRights(t.Context()), lease.ErrClosed)
		if wantErr(t, "a later call", err, lease.ErrClosed); asked != 1 {
			t.Errorf("%d requests, want one", asked)
		}
	})
}
