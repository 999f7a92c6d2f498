package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Busy is the error of a request that an overloaded [Objects] refused without doing anything. The
// store repeats the request.
type Busy struct {
	Err error
	// After is the server's minimum wait before the request is repeated.
	After time.Duration
}

func (b *Busy) Error() string { return fmt.Sprint(b.Err) }
func (b *Busy) Unwrap() error { return b.Err }

const (
	// busyTries is how often a request is sent: its context may have no deadline.
	busyTries = 10
	// The first pause is up to minBusy, the next one up to twice as long, and so on to maxBusy.
	minBusy = 100 * time.Millisecond
	maxBusy = 8 * time.Second
)

// errClosed is the error of requests after Close, and of those that Close ends.
var errClosed = errors.New("the store is closed")

// waiter repeats requests while the server is busy, and verifies that the server stored what was
// sent.
type waiter struct {
	Objects
	calls sync.WaitGroup

	mu   sync.Mutex
	life context.Context // until Close
	end  context.CancelFunc
}

// begin counts a call that begins, or returns false after close.
func (w *waiter) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life.Err() != nil {
		return false
	}
	w.calls.Add(1)
	return true
}

// close ends the calls in flight.
func (w *waiter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
}

func (w *waiter) Read(ctx context.Context, name string) (Object, error) {
	return again(ctx, w,
		func(ctx context.Context) (Object, error) { return w.Objects.Read(ctx, name) })
}

func (w *waiter) Write(ctx context.Context, name string, data []byte, version string) (Object,
	error) {
	o, err := again(ctx, w, func(ctx context.Context) (Object, error) {
		return w.Objects.Write(ctx, name, data, version)
	})
	if err == nil &&
		(o.Version == "" || o.Version == version || o.Data != nil && !bytes.Equal(o.Data, data)) {
		err = fmt.Errorf("%s: %w", name, errAltered)
	}
	return o, err
}

func (w *waiter) List(ctx context.Context) (map[string]Object, error) {
	return again(ctx, w, w.Objects.List)
}

func again[T any](ctx context.Context, w *waiter,
	request func(context.Context) (T, error)) (answer T, err error) {
	if !w.begin() {
		return answer, errClosed
	}
	defer w.calls.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.life, cancel)()
	for try := 0; ; try++ {
		answer, err = request(ctx)
		busy := (*Busy)(nil)
		if !errors.As(err, &busy) || try == busyTries-1 {
			break
		}
		wait := max(rand.N(min(minBusy<<try, maxBusy)), busy.After+rand.N(busy.After/2+1))
		if over := sleep(ctx, wait); over != nil {
			err = fmt.Errorf("%w; retry in %s: %w", err, wait.Round(time.Millisecond), over)
			break
		}
	}
	if err != nil && w.life.Err() != nil {
		err = fmt.Errorf("%w: %w", errClosed, err)
	}
	return answer, err
}

// sleep returns an error if the context ends first, at once if its deadline is earlier.
func sleep(ctx context.Context, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return context.DeadlineExceeded
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
