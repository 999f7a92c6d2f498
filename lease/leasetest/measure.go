package leasetest

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
)

// MeasureAcquire measures Acquire and Renew with blocks of the default size, of which a store has
// 16384, under the load of many processes at once:
//
//   - 10000 processes that start at almost the same time, each with its own
//     block;
//   - Acquire by 64 clients at once, when few blocks are taken and when 16000
//     are;
//   - Acquire by one client when 16000 are taken;
//   - Renew by 64 clients at once, and by one.
//
// It reports calls per second, the median and the 99th percentile of their durations. It checks
// that every block is granted once. Run it with -benchtime 1x for a single crowd.
func MeasureAcquire(b *testing.B, h Harness) {
	const clients = 64
	nodes, now := driver.AllNodes, start()
	b.Run("10000 start", func(b *testing.B) {
		newCrowd(b, h, nodes, clients).acquire(10_000, now, time.Hour, false).report(b) // regardless of b.N
	})
	taken := func(b *testing.B, n int) *crowd {
		c := newCrowd(b, h, nodes, clients)
		c.acquire(n, now, 5*time.Hour, false)
		b.ResetTimer()
		return c
	}
	// Each client returns its block, so the number of taken blocks stays the same.
	b.Run("64 clients, 1000 taken", func(b *testing.B) {
		taken(b, 1000).acquire(b.N, now, time.Hour, true).report(b)
	})
	b.Run("64 clients, 16000 taken", func(b *testing.B) {
		taken(b, 16_000).acquire(b.N, now, time.Hour, true).report(b)
	})
	b.Run("1 client, 16000 taken", func(b *testing.B) {
		c := taken(b, 16_000)
		c.clients = c.clients[:1]
		c.acquire(b.N, now, time.Hour, true).report(b)
	})
	for _, n := range []int{clients, 1} {
		b.Run(fmt.Sprintf("%d clients renew", n), func(b *testing.B) {
			newCrowd(b, h, nodes, n).renew(b.N, now).report(b)
		})
	}
}

type crowd struct {
	b       *testing.B
	clients []lease.Store

	mu      sync.Mutex
	seconds secondsOf
}

func newCrowd(b *testing.B, h Harness, nodes driver.NodeRange, clients int) *crowd {
	return &crowd{b: b, clients: clientsOf(b, h.New(b), nodes, clients), seconds: secondsOf{}}
}

// took holds the duration of each call, and of all of them together.
type took struct {
	each []time.Duration
	all  time.Duration
}

// acquire makes n calls with all clients at once.
func (c *crowd) acquire(n int, now time.Time, ttl time.Duration, giveBack bool) took {
	c.b.Helper()
	ctx := context.Background()
	each := make([]time.Duration, n)
	var next atomic.Int64
	began := time.Now()
	atOnce(len(c.clients), func(id int) {
		for {
			i := next.Add(1) - 1
			if i >= int64(n) {
				return
			}
			called := time.Now()
			g, err := c.clients[id].Acquire(ctx, request(now, ttl))
			each[i] = time.Since(called)
			if err != nil {
				c.b.Errorf("acquire: %v", err)
				return
			}
			if giveBack {
				if err := c.clients[id].Release(ctx, g, lease.NewNonce(), g.Start); err != nil {
					c.b.Errorf("release: %v", err)
					return
				}
				continue
			}
			c.mu.Lock()
			if other, overlaps := c.seconds.add(g.Lease); overlaps {
				c.b.Errorf("granted twice: %+v and %+v", g.Lease, other)
			}
			c.mu.Unlock()
		}
	})
	return took{each, time.Since(began)}
}

// renew makes n calls with all clients at once, each for a grant.
func (c *crowd) renew(n int, now time.Time) took {
	c.b.Helper()
	ctx := context.Background()
	grants := make([]lease.Grant, len(c.clients))
	for i, s := range c.clients {
		grants[i] = mustAcquire(c.b, s, request(now, time.Minute))
	}
	c.b.ResetTimer()
	each := make([]time.Duration, n)
	var next atomic.Int64
	began := time.Now()
	atOnce(len(c.clients), func(id int) {
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			called := time.Now()
			g, err := c.clients[id].Renew(ctx, grants[id], renewal(lease.NewNonce(), grants[id].End.Add(time.Second)))
			each[i] = time.Since(called)
			if err != nil {
				c.b.Errorf("renew: %v", err)
				return
			}
			grants[id] = g
		}
	})
	return took{each, time.Since(began)}
}

func (t took) report(b *testing.B) {
	slices.Sort(t.each)
	b.ReportMetric(float64(len(t.each))/t.all.Seconds(), "calls/s")
	b.ReportMetric(t.each[len(t.each)/2].Seconds()*1000, "ms/median")
	b.ReportMetric(t.each[len(t.each)*99/100].Seconds()*1000, "ms/p99")
	b.ReportMetric(0, "ns/op") // meaningless here
}
