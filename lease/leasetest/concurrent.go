package leasetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// load is random calls of every kind: acquires, and renewals and releases of a client's own and others'
// grants, old versions included, while the time advances.
type load struct {
	calls   int           // per client
	seed    uint64        // picks the calls; their order is up to the machine
	timeout time.Duration // per call
	pause   time.Duration // the longest pause between two calls of a client; 0 is none
}

// run makes the calls with all clients at once, and returns their history.
func (l load) run(clients ...driver.Store) *history {
	var (
		h      = newHistory(few)
		now    atomic.Int64 // half seconds since t0; shared, so that some clients lag
		t0     = start()
		shared sync.Map // node → a grant seen for it
		all    sync.WaitGroup
	)
	for id, s := range clients {
		c := loader{store: h.client(id, s), alone: len(clients) == 1, rand: rand.New(rand.NewPCG(l.seed, uint64(id))), shared: &shared}
		all.Go(func() {
			for range l.calls {
				at := t0.Add(time.Duration(now.Add(c.rand.Int64N(6))) * time.Second / 2)
				ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
				c.call(ctx, at)
				cancel()
				if l.pause > 0 {
					time.Sleep(time.Duration(c.rand.Int64N(int64(l.pause))))
				}
			}
		})
	}
	all.Wait()
	return h
}

type loader struct {
	store     lease.Store
	alone     bool // no other client calls the store
	rand      *rand.Rand
	shared    *sync.Map
	mine, old lease.Grant // old is mine before its last change
}

func (l *loader) call(ctx context.Context, now time.Time) {
	g := l.mine
	switch l.rand.IntN(10) {
	case 0, 1:
		if other, ok := l.shared.Load(few.Block(l.rand.IntN(few.Blocks())).Node); ok {
			g = other.(lease.Grant)
		}
	case 2:
		g = l.old
	case 3:
		g.Version++
	}
	kind, ttl := l.rand.IntN(10), lease.MinTTL+time.Duration(l.rand.IntN(40))*time.Second/2
	var got lease.Grant
	var err error
	switch {
	case g.Nonce == "" || kind < 4:
		r := request(now, ttl)
		if g.Nonce != "" && kind == 0 && l.alone {
			r.Nonce = g.Nonce // as in a repeated message; one who uses it at the same time is not answered
		}
		got, err = l.store.Acquire(ctx, r)
	case kind < 7:
		got, err = l.store.Renew(ctx, g, request(now, ttl))
		if errors.Is(err, lease.ErrLost) && l.rand.IntN(2) == 0 {
			l.mine = lease.Grant{}
		}
	case kind < 9:
		err = l.store.Release(ctx, g, lease.NewNonce(), now)
	default:
		got, err = l.store.Get(ctx, g.Node)
	}
	if err == nil && got.Nonce != "" {
		l.old, l.mine = l.mine, got
		l.shared.Store(got.Node, got)
	}
}

// linearizable checks random calls: in one sequence, and by six clients at once.
func linearizable(tb testing.TB, h Harness) {
	for seed, clients := range []int{1, 6, 6, 6, 6} {
		const calls = 150
		l := load{calls: calls / clients, seed: uint64(seed), timeout: time.Minute}
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
// decided of one try; so fault is called as often, with a new storage each time. Few clients are
// enough, and many make the check slow.
func Faults(tb testing.TB, clients int, newStorage func(testing.TB) Storage, fault func() error) {
	tb.Helper()
	const tries, timeout = 4, 20 * time.Second
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

// atOnce calls f for 0 to n-1, each call in its own goroutine.
func atOnce(n int, f func(i int)) {
	var all sync.WaitGroup
	ready := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-ready
			f(i)
		})
	}
	close(ready)
	all.Wait()
}

func everyBlockAtOnce(tb testing.TB, h Harness) {
	nodes := driver.NodeRange{First: 0, Nodes: randflake.MaxNode + 1, BlockSize: (randflake.MaxNode + 1) / 64}
	clients, t0 := h.clients(tb, nodes, 16), start()
	for _, now := range []time.Time{t0, t0.Add(time.Minute)} {
		var taken sync.Map
		atOnce(len(clients), func(i int) {
			for range nodes.Blocks() / len(clients) {
				g, err := clients[i].Acquire(context.Background(), request(now, time.Minute))
				if err != nil {
					tb.Errorf("acquire while others do: %v", err)
					return
				}
				if _, twice := taken.LoadOrStore(g.Node, nil); twice {
					tb.Errorf("granted twice: %+v", g.Lease)
				}
			}
		})
		_, err := clients[0].Acquire(context.Background(), request(now, time.Minute))
		if !errors.Is(err, lease.ErrNoFreeNode) {
			tb.Errorf("acquire when every block is taken: got error %v, want %v", err, lease.ErrNoFreeNode)
		}
	}
}
