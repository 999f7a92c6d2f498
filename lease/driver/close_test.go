package driver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease/driver"
)

// closer is a client that ends when its server answers.
type closer struct {
	driver.Objects
	answers chan error
}

func (c closer) Close() error { return <-c.answers }

// Close waits for a client for half a second, and not once its context is over.
func TestCloseIsBounded(t *testing.T) {
	failed := errors.New("the client failed")
	for name, c := range map[string]struct {
		ends   time.Duration // of the context, from the call; 0 if never
		answer error         // at once, or none
		want   error
		took   time.Duration
	}{
		"a server that hangs, no deadline": {
			want: context.DeadlineExceeded, took: 500 * time.Millisecond,
		},
		"a server that hangs, a deadline": {
			ends: time.Millisecond, want: context.DeadlineExceeded, took: time.Millisecond,
		},
		"a server that answers": {answer: failed, want: failed},
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := make(chan error, 1)
			defer close(answers)
			if c.answer != nil {
				answers <- c.answer
			}
			ctx := t.Context()
			if c.ends > 0 {
				limited, cancel := context.WithTimeout(ctx, c.ends)
				defer cancel()
				ctx = limited
			}
			s := client(closer{new(counted), answers}, 2)
			began := time.Now()
			err := s.Close(ctx)
			again := s.Close(ctx) // returns the same at once
			if took := time.Since(began); !errors.Is(err, c.want) || !errors.Is(again, err) ||
				took != c.took {
				t.Errorf("%s: %v, again %v, after %s, want %v after %s", name, err, again, took,
					c.want, c.took)
			}
		})
	}
}
