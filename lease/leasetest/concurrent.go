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

// Load is the load that [Load.Run] puts on a storage.
type Load struct {
	Calls   int           // per client
	Seed    uint64        // picks the calls; their order is up to the machine
	Timeout time.Duration // per call
	Pause   time.Duration // the longest pause between two calls of a client; 0 is none
}

// Run makes calls of every kind with all clients at once: acquires, and renewals and releases of
// their own and others' grants, old versions included, while the time advances. It is for the
// clients of a [History].
func (load Load) Run(clients []lease.Store, nodes driver.NodeRange) {
	var (
		now    atomic.Int64 // half seconds since t0; shared, so that some clients lag
		t0     = start()
		shared sync.Map // block index → a grant seen for it
		all    sync.WaitGroup
	)
	for id, s := range clients {
		all.Go(func() {
			l := loader{store: s, alone: len(clients) == 1, rand: rand.New(rand.NewPCG(load.Seed, uint64(id))), shared: &shared, nodes: nodes}
			for range load.Calls {
				at := t0.Add(time.Duration(now.Add(l.rand.Int64N(6))) * time.Second / 2)
				ctx, cancel := context.WithTimeout(context.Background(), load.Timeout)
				l.call(ctx, at)
				cancel()
				if load.Pause > 0 {
					time.Sleep(time.Duration(l.rand.Int64N(int64(load.Pause))))
				}
			}
		})
	}
	all.Wait()
}

type loader struct {
	store  lease.Store
	alone  bool // no other client calls the store
	rand   *rand.Rand
	shared *sync.Map
	nodes  driver.NodeRange
	mine   lease.Grant
	old    lease.Grant // my grant before its last change
}

func (l *loader) call(ctx context.Context, now time.Time) {
	g := l.mine
	switch l.rand.IntN(10) {
	case 0, 1:
		if other, ok := l.shared.Load(l.rand.IntN(l.nodes.Blocks())); ok {
			g = other.(lease.Grant)
		}
	case 2:
		g = l.old
	case 3:
		g.Version++
	}
	kind := l.rand.IntN(10)
	switch {
	case g.Nonce == "" || kind < 4:
		r := request(now, lease.MinTTL+time.Duration(l.rand.IntN(40))*time.Second/2)
		if g.Nonce != "" && kind == 0 && l.alone {
			r.Nonce = g.Nonce // as in a repeated message; one who uses it at the same time is not answered
		}
		got, err := l.store.Acquire(ctx, r)
		l.saw(got, err)
	case kind < 7:
		got, err := l.store.Renew(ctx, g, renewal(lease.NewNonce(), now.Add(time.Duration(l.rand.IntN(40))*time.Second/2)))
		if errors.Is(err, lease.ErrLost) && l.rand.IntN(2) == 0 {
			l.mine = lease.Grant{}
			return
		}
		l.saw(got, err)
	case kind < 9:
		_ = l.store.Release(ctx, g, lease.NewNonce(), now)
	default:
		got, err := l.store.Get(ctx, g.Node)
		l.saw(got, err)
	}
}

func (l *loader) saw(g lease.Grant, err error) {
	if err != nil || g.Nonce == "" {
		return
	}
	l.old, l.mine = l.mine, g
	if i, err := l.nodes.Index(g.Node); err == nil {
		l.shared.Store(i, g)
	}
}

// linearizable checks random calls: in one sequence, and by six clients at once.
func linearizable(tb testing.TB, h Harness) {
	for seed, clients := range []int{1, 6, 6, 6, 6} {
		history := NewHistory(few)
		var recorded []lease.Store
		for _, s := range h.clients(tb, few, clients) {
			recorded = append(recorded, history.Client(s))
		}
		const calls = 150
		Load{Calls: calls / clients, Seed: uint64(seed), Timeout: time.Minute}.Run(recorded, few)
		if n, unknown := history.Len(); n != calls || unknown > 0 {
			tb.Errorf("%d calls, %d of them unanswered; want %d, all answered", n, unknown, calls)
			return // too many for the checker
		}
		if !history.Check(tb, time.Minute) {
			tb.Errorf("linearizability of %d calls: not decided within a minute", calls)
		}
	}
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
