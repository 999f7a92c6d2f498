package rowtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// load is random calls of clients at once, while the time advances.
type load struct {
	calls   int           // per client
	seed    uint64        // picks the calls; their order is up to the machine
	timeout time.Duration // per call
	pause   time.Duration // the longest pause between two calls of a client; 0 is none
}

// run makes the calls with all clients at once, and returns their history.
func (l load) run(clients ...driver.Store) *history {
	var (
		h      = &history{zero: time.Now()}
		now    atomic.Int64 // half seconds since t0; shared, so that some clients lag
		t0     = start()
		shared sync.Map // node → a grant seen for it
		all    sync.WaitGroup
	)
	for id, s := range clients {
		record := func(in input, call func() (lease.Grant, error)) (lease.Grant, error) { return h.record(id, in, call) }
		c := loader{Rand: rand.New(rand.NewPCG(l.seed, uint64(id))), store: watched{s, record}, about: few, seen: &shared}
		all.Go(func() {
			for range l.calls {
				at := t0.Add(time.Duration(now.Add(c.Int64N(6))) * time.Second / 2)
				ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
				c.call(ctx, at)
				cancel()
				time.Sleep(time.Duration(c.Int64N(int64(l.pause) + 1)))
			}
		})
	}
	all.Wait()
	return h
}

// linearizable checks random calls by six clients at once.
func linearizable(tb testing.TB, h Harness) {
	const clients, calls = 6, 150
	for seed := range uint64(4) {
		l := load{calls: calls / clients, seed: seed, timeout: time.Minute}
		history := l.run(h.clients(tb, few, clients)...)
		if n, unknown := history.count(); n != calls || unknown > 0 {
			tb.Errorf("%d calls, %d of them unanswered; want %d, all answered", n, unknown, calls)
			return // too many for the checker
		}
		if !history.check(tb, time.Minute) {
			tb.Errorf("linearizability of %d calls: not decided within a minute", calls)
		}
	}
}

// Faults checks what clients see while fault happens, such as a server that is killed and started
// again: with those calls carried out or not that had no answer, it must be linearizable. It tries
// up to four times, since on a busy machine so many calls may have no answer that it cannot be
// decided of one try; so fault is called as often, with a new storage each time.
func Faults(tb testing.TB, newStorage func(testing.TB) Storage, fault func() error) {
	tb.Helper()
	const tries, timeout, clients = 4, 20 * time.Second, 5 // more make the check slow
	for range tries {
		done, l := make(chan *history), load{calls: 50, seed: 1, timeout: time.Second, pause: 60 * time.Millisecond}
		stores := Harness{New: newStorage}.clients(tb, few, clients)
		go func() { done <- l.run(stores...) }()
		time.Sleep(300 * time.Millisecond)
		if err := fault(); err != nil {
			tb.Errorf("fault: %v", err)
		}
		history := <-done
		calls, unknown := history.count()
		tb.Logf("%d calls, %d without an answer", calls, unknown)
		if unknown > calls/2 {
			tb.Errorf("%d of %d calls have no answer; that shows little", unknown, calls)
		}
		if history.check(tb, timeout) {
			return
		}
	}
	tb.Errorf("linearizability: not decided of any of %d histories", tries)
}

// atOnce calls f for 0 to n-1, each call in its own goroutine, and returns the errors.
func atOnce(n int, f func(i int) error) []error {
	var all sync.WaitGroup
	ready, errs := make(chan struct{}), make([]error, n)
	for i := range n {
		all.Go(func() {
			<-ready
			errs[i] = f(i)
		})
	}
	close(ready)
	all.Wait()
	return errs
}

func everyBlockAtOnce(tb testing.TB, h Harness) {
	nodes := driver.NodeRange{Nodes: randflake.MaxNode + 1, BlockSize: (randflake.MaxNode + 1) / 64}
	clients, t0 := h.clients(tb, Nodes(nodes), 8), start()
	for _, now := range []time.Time{t0, t0.Add(time.Minute)} {
		var taken sync.Map
		errs := atOnce(len(clients), func(i int) error {
			for range nodes.Blocks() / len(clients) {
				g, err := clients[i].Acquire(context.Background(), request(now, time.Minute))
				if err != nil {
					return err
				}
				if _, twice := taken.LoadOrStore(g.Node, nil); twice {
					return fmt.Errorf("granted twice: %+v", g.Lease)
				}
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			tb.Errorf("acquires at once: %v", err)
		}
		_, err := clients[0].Acquire(context.Background(), request(now, time.Minute))
		if !errors.Is(err, lease.ErrNoFreeNode) {
			tb.Errorf("acquire when every block is taken: got error %v, want %v", err, lease.ErrNoFreeNode)
		}
	}
}
