package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// errAltered is returned if a server acknowledged a write but did not store what was sent, as its
// response shows.
var errAltered = errors.New("the server acknowledged a write, but did not store what was sent: " +
	"does something between here and it, such as a webhook or a gateway, change objects?")

const (
	// busyTries is how often a request is sent: its context may have no deadline.
	busyTries = 10
	// The first pause is up to minBusy, the next one up to twice as long, and so on to maxBusy.
	minBusy = 100 * time.Millisecond
	maxBusy = 8 * time.Second
)

// requests sends the requests of a store: each until the server is not busy, and none after close.
type requests struct {
	driver.Objects
	inFlight sync.WaitGroup

	mu   sync.Mutex      // held while a request begins, and by close
	life context.Context // until close
	end  context.CancelFunc
}

func (r *requests) Read(ctx context.Context, name string) (driver.Object, error) {
	return send(ctx, r, busyTries,
		func(ctx context.Context) (driver.Object, error) { return r.Objects.Read(ctx, name) })
}

// write sends a write at most this often, and verifies that the server stored what was sent.
func (r *requests) write(ctx context.Context, tries int, name string, data []byte,
	version, place string) (driver.Object, error) {
	o, err := send(ctx, r, tries, func(ctx context.Context) (driver.Object, error) {
		return r.Objects.Write(ctx, name, data, version, place)
	})
	if err == nil &&
		(o.Version == "" || o.Version == version || o.Data != nil && !bytes.Equal(o.Data, data)) {
		err = fmt.Errorf("%s: %w", name, errAltered)
	}
	return o, err
}

func (r *requests) Write(ctx context.Context, name string, data []byte,
	version, place string) (driver.Object, error) {
	return r.write(ctx, busyTries, name, data, version, place)
}

// do sends a request that returns nothing.
func (r *requests) do(ctx context.Context, request func(context.Context) error) error {
	_, err := send(ctx, r, busyTries, func(ctx context.Context) (none struct{}, err error) {
		return none, request(ctx)
	})
	return err
}

// send sends a request, which close ends, until the server is not busy, for as long as the context
// allows.
func send[T any](ctx context.Context, r *requests, tries int,
	request func(context.Context) (T, error)) (answer T, err error) {
	if !r.begin() {
		return answer, lease.ErrClosed
	}
	defer r.inFlight.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	for try := 1; ; try++ {
		answer, err = request(ctx)
		busy, ok := errors.AsType[*driver.TryAgain](err)
		if !ok || try == tries {
			break
		}
		wait := max(rand.N(min(minBusy<<(try-1), maxBusy)), busy.After+rand.N(busy.After/2+1))
		if over := sleep(ctx, wait); over != nil {
			err = fmt.Errorf("%w; retry in %s: %w", err, wait.Round(time.Millisecond), over)
			break
		}
	}
	if err != nil && r.life.Err() != nil {
		err = fmt.Errorf("%w: %w", lease.ErrClosed, err)
	}
	return answer, err
}

// begin counts a request, or returns false after close.
func (r *requests) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil {
		return false
	}
	r.inFlight.Add(1)
	return true
}

// close ends the requests in flight, waits for them, and then closes the client.
func (r *requests) close() error {
	r.mu.Lock()
	r.end()
	r.mu.Unlock()
	r.inFlight.Wait()
	if c, ok := r.Objects.(io.Closer); ok {
		return c.Close()
	}
	return nil
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

// each calls f for the indexes below n, most of them at once, and returns the first error. After an
// error it starts no further calls. For a single one it starts no goroutine.
func each(ctx context.Context, most, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun atomic.Int64
	work := func() {
		for i := int(begun.Add(1)); i <= n && ctx.Err() == nil; i = int(begun.Add(1)) {
			if err := f(ctx, i-1); err != nil {
				cancel(err)
			}
		}
	}
	var others sync.WaitGroup
	for range min(n, most) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return context.Cause(ctx)
}
