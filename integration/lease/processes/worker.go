//go:build unix

package processes

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
	"github.com/traceflake/traceflake/randflake"
)

const (
	workerLog = "TRACEFLAKETEST_LOG" // set in a worker: the file for its entries
	workerURL = "TRACEFLAKETEST_URL"
	workerTTL = 2 * time.Second
)

// Worker returns at once unless this process is a worker of [Run]. TestMain must begin
// with it.
func Worker() {
	log := os.Getenv(workerLog)
	if log == "" {
		return
	}
	if err := work(log, os.Getenv(workerURL)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work generates IDs as fast as its output is read, until it is asked to end or is killed.
func work(name, url string) error {
	end, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
		stop()
	}()
	store, err := stores.Open(url)
	if err != nil {
		return err
	}
	log, err := os.Create(name)
	if err != nil {
		return err
	}
	codec, err := again(func() (*randflake.Codec, error) { return codecOf(end, store) })
	if err != nil {
		return err
	}
	report := func(err error) { fmt.Fprintln(os.Stderr, err) }
	w := &witness{Store: store, log: json.NewEncoder(log)}
	k, err := lease.Start(end, w, lease.FixedSecret(codec), lease.WithTTL(workerTTL),
		lease.WithErrorHandler(report))
	if err != nil {
		return err
	}
	ids := make([]randflake.ID, 1024)
	buf := make([]byte, 0, 8*len(ids))
	for end.Err() == nil {
		n, _, err := k.Fill(ids)
		if n == 0 && err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		buf = buf[:0]
		for _, id := range ids[:n] {
			buf = binary.BigEndian.AppendUint64(buf, uint64(id))
		}
		if _, err := os.Stdout.Write(buf); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), workerTTL)
	defer cancel()
	_ = k.Close(ctx) // if the store is unreachable, only the remaining seconds are lost
	_ = store.Close()
	return nil
}

// again retries f for some time: the network may be bad, and an outage may have cut connections.
func again[T any](f func() (T, error)) (result T, err error) {
	for range 100 {
		if result, err = f(); err == nil || lease.Permanent(err) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return result, err
}

// codecOf returns the codec of the store's own secret if it has one, otherwise that of a fleet.
func codecOf(ctx context.Context, s stores.Store) (*randflake.Codec, error) {
	if s.KeepsSecret() {
		k, err := s.Secrets(ctx)
		return k.Codec(), err
	}
	return randflake.NewCodec([]byte("one fleet's code"))
}

// entry is a block in a worker's log, written before its Keeper could use the block.
type entry struct {
	lease.Grant
	Released bool // the Keeper uses no second from the end on
}

// witness is a store that logs the grants and what the Keeper gives back.
type witness struct {
	lease.Store
	log    *json.Encoder
	nonces sync.Map // of all writes
}

func (w *witness) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	w.nonces.Store(r.Nonce, nil)
	return w.learn(w.Store.Acquire(ctx, r))
}

func (w *witness) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	w.nonces.Store(r.Nonce, nil)
	return w.learn(w.Store.Renew(ctx, g, r))
}

func (w *witness) Get(ctx context.Context, g lease.Grant) (lease.Grant, error) {
	return w.learn(w.Store.Get(ctx, g))
}

func (w *witness) Release(ctx context.Context, g lease.Grant, nonce string,
	unused time.Time) error {
	e := entry{g, true}
	e.End = unused
	if err := w.log.Encode(e); err != nil {
		return err
	}
	return w.Store.Release(ctx, g, nonce, unused)
}

// learn logs a block before the Keeper can use it.
func (w *witness) learn(g lease.Grant, err error) (lease.Grant, error) {
	if _, own := w.nonces.Load(g.Nonce); err != nil || !own {
		return g, err
	}
	return g, w.log.Encode(entry{Grant: g})
}
