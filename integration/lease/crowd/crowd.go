// Package crowd measures stores under the load of many processes that start at once.
package crowd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Measure measures Acquire and Renew by 64 clients at once, and by one, with blocks of the default size,
// of which a store has 16384: when few are taken, and when 16000 are. If requests counts those since it
// was called last, it reports how many a call takes.
func Measure(b *testing.B, h leasetest.Harness, requests func() int) {
	const most = 64
	ctx, now := context.Background(), time.Now().Add(-6*time.Hour).UTC().Truncate(time.Second)
	for _, load := range []struct{ clients, taken int }{{most, 1000}, {most, 16_000}, {1, 16_000}} {
		b.Run(fmt.Sprintf("%d clients, %d taken", load.clients, load.taken), func(b *testing.B) {
			var clients [most]lease.Store
			var grants [most]lease.Grant
			storage := h.New(b)
			storage.Create(b, lease.Description{})
			for i := range clients {
				clients[i] = storage.Client(b)
			}
			inParallel(b, most, load.taken, func(i, _ int) (err error) {
				grants[i], err = clients[i].Acquire(ctx, request(now, 5*time.Hour))
				return err
			})
			for _, c := range []struct {
				name string
				call func(client, n int) error
			}{
				{"acquire", func(i, _ int) error {
					g, err := clients[i].Acquire(ctx, request(now, time.Hour))
					if err == nil { // the number of taken blocks stays the same
						err = clients[i].Release(ctx, g, lease.NewNonce(), g.Start)
					}
					return err
				}},
				{"renew", func(i, _ int) (err error) {
					longer := request(grants[i].End.Add(time.Second-lease.MaxTTL), lease.MaxTTL) // one second more
					grants[i], err = clients[i].Renew(ctx, grants[i], longer)
					return err
				}},
			} {
				b.Run(c.name, func(b *testing.B) {
					if requests != nil {
						requests()
						defer func() { b.ReportMetric(float64(requests())/float64(b.N), "requests/call") }()
					}
					inParallel(b, load.clients, b.N, c.call)
				})
			}
		})
	}
}

func request(now time.Time, ttl time.Duration) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: ttl}
}

// inParallel has workers call f with their number and with 0 to n-1, until one call fails.
func inParallel(tb testing.TB, workers, n int, f func(worker, i int) error) {
	tb.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := f(worker, int(i)); err != nil {
					tb.Error(err)
					next.Store(int64(n))
				}
			}
		})
	}
	all.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
}
