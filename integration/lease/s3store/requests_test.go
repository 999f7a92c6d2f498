package s3store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// counts are requests, by kind.
type counts struct{ gets, puts, lists, refused float64 }

func (c counts) minus(o counts) counts {
	return counts{c.gets - o.gets, c.puts - o.puts, c.lists - o.lists, c.refused - o.refused}
}

func (c counts) over(n int) counts {
	return counts{c.gets / float64(n), c.puts / float64(n), c.lists / float64(n), c.refused / float64(n)}
}

func (c counts) all() float64 { return c.gets + c.puts + c.lists }

// counter counts the requests of the stores of a configuration.
type counter struct{ gets, puts, lists, refused atomic.Int64 }

func count(cfg aws.Config) (aws.Config, *counter) {
	c := new(counter)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 128
	cfg.HTTPClient = &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPut:
			c.puts.Add(1)
		case r.URL.Query().Has("list-type"):
			c.lists.Add(1)
		default:
			c.gets.Add(1)
		}
		res, err := transport.RoundTrip(r)
		if err == nil && (res.StatusCode == http.StatusPreconditionFailed || res.StatusCode == http.StatusConflict) {
			c.refused.Add(1)
		}
		return res, err
	})}
	return cfg, c
}

func (c *counter) now() counts {
	return counts{float64(c.gets.Load()), float64(c.puts.Load()), float64(c.lists.Load()), float64(c.refused.Load())}
}

// What a process costs that is alone, each step.
func TestRequests(t *testing.T) {
	server := started(t)
	cfg, c := count(config(server.Endpoint(), s3.Root))
	ctx, now := t.Context(), time.Now()
	var s lease.Store
	var g lease.Grant
	reopen := func() (err error) {
		s, err = open(cfg, "requests/", driver.NodeRange{Nodes: 4 * 64 * 8, BlockSize: 8})
		return err
	}
	acquire := func() (err error) {
		g, err = s.Acquire(ctx, calls.Request(now))
		return err
	}
	if err := reopen(); err != nil {
		t.Fatal(err)
	}
	for range 100 { // so that each of the 4 pages is there
		if err := acquire(); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		do   func() error
		want counts
	}{
		{"open", reopen, counts{}},
		// In each of 5 rounds the probe makes two gets and 8 puts, 7 of which are to be
		// refused, and 2 more at the end, and a list and a get.
		{"the first acquire", acquire, counts{gets: 1 + 11 + 1, puts: 42 + 1, lists: 1, refused: 37}},
		{"acquire", acquire, counts{gets: 1, puts: 1}},
		{"renew", func() (err error) { g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End)); return err }, counts{gets: 1, puts: 1}},
		{"get", func() error { _, err := s.Get(ctx, g.Node); return err }, counts{gets: 1}},
		{"release", func() error { return s.Release(ctx, g, lease.NewNonce(), now) }, counts{gets: 1, puts: 1}},
	} {
		before := c.now()
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		got := c.now().minus(before)
		if got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
}

// A fleet of 10000 processes that renew every 5 minutes makes at most 70
// requests a second. At 50 ms a request about 3 renewals are under way at any
// time, and so are 4 here: what counts is how often two of them meet on a page.
func TestRequestsOfAFleet(t *testing.T) {
	const (
		processes, every = 10_000, 5 * 60 // seconds
		most             = 70             // requests a second
		atOnce, renewals = 4, 2000
	)
	server := started(t)
	cfg, c := count(config(server.Endpoint(), s3.Root))
	s, err := open(cfg, "fleet/", driver.AllNodes)
	if err != nil {
		t.Fatal(err)
	}
	per := load(t, c, s, atOnce, 1500, renewals)
	rate := per.all() * processes / every
	t.Logf("a renewal takes %.4f requests, %.4f of them refused: %.1f a second for %d processes", per.all(), per.refused, rate, processes)
	if rate > most {
		t.Errorf("%.1f requests a second, want at most %d", rate, most)
	}
}

// load acquires blocks and renews them in random order, and returns what a
// renewal took.
func load(tb testing.TB, c *counter, s lease.Store, atOnce, blocks, renewals int) counts {
	tb.Helper()
	grants := make([]lease.Grant, blocks)
	each(tb, atOnce, blocks, func(ctx context.Context, i int) (err error) {
		grants[i], err = s.Acquire(ctx, calls.Request(time.Now()))
		return err
	})
	order := make([]int, renewals)
	locks := make([]sync.Mutex, blocks)
	for i := range order {
		order[i] = rand.IntN(blocks)
	}
	before := c.now()
	each(tb, atOnce, renewals, func(ctx context.Context, i int) (err error) {
		locks[order[i]].Lock()
		defer locks[order[i]].Unlock()
		g := &grants[order[i]]
		*g, err = s.Renew(ctx, *g, calls.Renewal(lease.NewNonce(), g.End))
		return err
	})
	return c.now().minus(before).over(renewals)
}

// each calls f n times, so many at once.
func each(tb testing.TB, atOnce, n int, f func(ctx context.Context, i int) error) {
	tb.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := f(tb.Context(), int(i)); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkRequests counts the requests of 10000 processes that start at once,
// 64 at a time, and of single calls when many blocks are taken.
func BenchmarkRequests(b *testing.B) {
	server := started(b)
	cfg, c := count(config(server.Endpoint(), s3.Root))
	s, err := open(cfg, "many/", driver.AllNodes)
	if err != nil {
		b.Fatal(err)
	}
	taken := 0
	take := func(b *testing.B, atOnce, n int, giveBack bool) {
		before, now := c.now(), time.Now()
		each(b, atOnce, n, func(ctx context.Context, _ int) error {
			g, err := s.Acquire(ctx, lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: 12 * time.Hour})
			if err == nil && giveBack {
				err = s.Release(ctx, g, lease.NewNonce(), g.Start)
			}
			return err
		})
		got := c.now().minus(before).over(n)
		if giveBack {
			got.gets, got.puts = got.gets-1, got.puts-1 // of the release, without its conflicts
		} else {
			taken += n
		}
		b.ReportMetric(got.gets, "GET/acquire")
		b.ReportMetric(got.puts, "PUT/acquire")
		b.ReportMetric(got.lists, "LIST/acquire")
		b.ReportMetric(got.refused, "refused/acquire")
		b.ReportMetric(0, "ns/op")
	}
	for _, to := range []int{1000, 10_000, 16_000} {
		b.Run(fmt.Sprintf("to %d taken, 64 at once", to), func(b *testing.B) {
			if taken < to {
				take(b, 64, to-taken, false)
			}
		})
	}
	for _, atOnce := range []int{1, 64} {
		b.Run(fmt.Sprintf("16000 taken, %d at once", atOnce), func(b *testing.B) { take(b, atOnce, 1000, true) })
	}
}
