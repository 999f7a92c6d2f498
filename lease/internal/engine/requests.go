package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// errAltered is returned if a server acknowledged a write but did not store what was sent, as its
// response shows.
var errAltered = errors.New("the server acknowledged a write, but did not store what was sent: " +
	"does something between here and it, such as a webhook or a gateway, change objects?")

// requests sends the requests of a store: each until the server is not busy, and none after Close.
type requests struct {
	driver.Objects
	inFlight sync.WaitGroup

	mu   sync.Mutex      // held while a request begins, and by close
	life context.Context // until close
	end  context.CancelFunc
}

func (r *requests) Read(ctx context.Context, name string) (driver.Object, error) {
	return send(ctx, r,
		func(ctx context.Context) (driver.Object, error) { return r.Objects.Read(ctx, name) })
}

// Write verifies that the server stored what was sent.
func (r *requests) Write(ctx context.Context, name string, data []byte,
	version string) (driver.Object, error) {
	o, err := send(ctx, r, func(ctx context.Context) (driver.Object, error) {
		return r.Objects.Write(ctx, name, data, version)
	})
	if err == nil &&
		(o.Version == "" || o.Version == version || o.Data != nil && !bytes.Equal(o.Data, data)) {
		err = fmt.Errorf("%s: %w", name, errAltered)
	}
	return o, err
}

func (r *requests) List(ctx context.Context) (map[string]driver.Object, error) {
	return send(ctx, r, r.Objects.List)
}

// send sends a request, which close ends.
func send[T any](ctx context.Context, r *requests,
	request func(context.Context) (T, error)) (answer T, err error) {
	if !r.begin() {
		return answer, lease.ErrClosed
	}
	defer r.inFlight.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	answer, err = whileBusy(ctx, request)
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
