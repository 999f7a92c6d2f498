// Package crowd measures stores under the load of many processes that start at once.
package crowd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// Measure measures Acquire and Renew with blocks of the default size, of which a store has 16384:
//
//   - 10000 processes that start at almost the same time, each with its own block;
//   - Acquire by 64 clients at once, when few blocks are taken and when 16000 are;
//   - Acquire by one client when 16000 are taken;
//   - Renew by 64 clients at once, and by one.
//
// It reports calls per second, the median and the 99th percentile of their durations, and, if requests
// counts those since it was called last, how many a call takes. Run it with -benchtime 1x for the 10000
// alone.
func Measure(b *testing.B, h leasetest.Harness, requests func() int) {
	now := time.Now().Add(-6 * time.Hour).UTC().Truncate(time.Second)
	b.Run("10000 start", func(b *testing.B) {
		c := newCrowd(b, h, requests, 64)
		c.run(10_000, c.acquire(now, time.Hour, false)).report(b) // regardless of b.N
	})
	for _, load := range []struct{ clients, taken int }{{64, 1000}, {64, 16_000}, {1, 16_000}} {
		b.Run(fmt.Sprintf("%d clients, %d taken", load.clients, load.taken), func(b *testing.B) {
			c := newCrowd(b, h, requests, 64)
			c.run(load.taken, c.acquire(now, 5*time.Hour, false))
			c.clients = c.clients[:load.clients]
			b.ResetTimer()
			c.run(b.N, c.acquire(now, time.Hour, true)).report(b) // the number of taken blocks stays the same
		})
	}
	for _, clients := range []int{64, 1} {
		b.Run(fmt.Sprintf("%d clients renew", clients), func(b *testing.B) {
			c := newCrowd(b, h, requests, clients)
			for i, s := range c.clients {
				var err error
				if c.grants[i], err = s.Acquire(context.Background(), request(now, time.Minute)); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			c.run(b.N, func(i int) (err error) {
				longer := request(c.grants[i].End.Add(time.Second-lease.MaxTTL), lease.MaxTTL) // one second more
				c.grants[i], err = c.clients[i].Renew(context.Background(), c.grants[i], longer)
				return err
			}).report(b)
		})
	}
}

func request(now time.Time, ttl time.Duration) lease.Request {
	return lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: ttl}
}

type crowd struct {
	b        *testing.B
	requests func() int
	clients  []lease.Store
	grants   []lease.Grant // of the clients that renew
}

func newCrowd(b *testing.B, h leasetest.Harness, requests func() int, clients int) *crowd {
	b.Helper()
	if requests == nil {
		requests = func() int { return 0 }
	}
	c := &crowd{b: b, requests: requests, grants: make([]lease.Grant, clients)}
	open := h.New(b)
	for range clients {
		s, err := open(driver.AllNodes)
		if err != nil {
			b.Fatal(err)
		}
		c.clients = append(c.clients, s)
	}
	return c
}

// acquire is a call of client i that acquires a block, and perhaps returns it.
func (c *crowd) acquire(now time.Time, ttl time.Duration, giveBack bool) func(i int) error {
	return func(i int) error {
		g, err := c.clients[i].Acquire(context.Background(), request(now, ttl))
		if err == nil && giveBack {
			err = c.clients[i].Release(context.Background(), g, lease.NewNonce(), g.Start)
		}
		return err
	}
}

// took holds the duration of each call, and of all of them together, and their requests.
type took struct {
	each     []time.Duration
	all      time.Duration
	requests int
}

// run makes n calls with all clients at once.
func (c *crowd) run(n int, call func(client int) error) took {
	c.b.Helper()
	each := make([]time.Duration, n)
	c.requests()
	began := time.Now()
	inParallel(c.b, len(c.clients), n, func(client, i int) error {
		called := time.Now()
		err := call(client)
		each[i] = time.Since(called)
		return err
	})
	return took{each, time.Since(began), c.requests()}
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

func (t took) report(b *testing.B) {
	slices.Sort(t.each)
	b.ReportMetric(float64(len(t.each))/t.all.Seconds(), "calls/s")
	b.ReportMetric(t.each[len(t.each)/2].Seconds()*1000, "ms/median")
	b.ReportMetric(t.each[len(t.each)*99/100].Seconds()*1000, "ms/p99")
	if t.requests > 0 {
		b.ReportMetric(float64(t.requests)/float64(len(t.each)), "requests/call")
	}
	b.ReportMetric(0, "ns/op") // meaningless here
}
