package calls

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// Requests counts the requests of a client: by method, with those that list objects apart, and by
// the status of responses that refuse them.
type Requests struct {
	http.RoundTripper
	mu sync.Mutex
	n  map[string]int
}

// List is the kind of requests that list objects.
const List = "LIST"

// Count returns a transport that counts.
func Count(transport http.RoundTripper) *Requests {
	return &Requests{RoundTripper: transport, n: map[string]int{}}
}

// RoundTrip implements [http.RoundTripper].
func (c *Requests) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := r.Method
	if q := r.URL.Query(); q.Has("list-type") || q.Has("labelSelector") {
		kind = List
	}
	c.add(kind)
	res, err := c.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode/100 == 4 && res.StatusCode != http.StatusNotFound {
		c.add(fmt.Sprint(res.StatusCode))
	}
	return res, err
}

func (c *Requests) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[what]++
}

// Take returns the counts since the last Take.
func (c *Requests) Take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = map[string]int{}
	return n
}

// Fleet has processes acquire a lease each and renew it once, in random order and some at once, and
// fails tb if 10000 that renew every 5 minutes would send more than 70 requests a second. Several may
// share a store.
func Fleet(tb testing.TB, c *Requests, processes, atOnce int, open func() (driver.Store, error)) {
	tb.Helper()
	ctx, now := context.Background(), time.Now()
	stores, grants := make([]lease.Store, processes), make([]lease.Grant, processes)
	order := rand.Perm(processes)
	each := func(f func(i int) error) float64 {
		tb.Helper()
		c.Take()
		var all errgroup.Group
		all.SetLimit(atOnce)
		for _, i := range order {
			all.Go(func() error { return f(i) })
		}
		if err := all.Wait(); err != nil {
			tb.Fatal(err)
		}
		n := c.Take()
		return float64(n[http.MethodGet]+n[http.MethodPut]+n[http.MethodPost]+n[List]) / float64(processes)
	}
	start := each(func(i int) (err error) {
		if stores[i], err = open(); err == nil {
			_, err = stores[i].Describe(ctx)
		}
		if err == nil {
			grants[i], err = stores[i].Acquire(ctx, Request(now))
		}
		return err
	})
	renew := each(func(i int) (err error) {
		grants[i], err = stores[i].Renew(ctx, grants[i], Renewal(lease.NewNonce(), now.Add(time.Hour)))
		return err
	})
	perSecond := 10_000 * renew / (lease.DefaultTTL / 2).Seconds()
	tb.Logf("%.3f requests to start, %.3f to renew: %.1f a second of 10000 processes", start, renew, perSecond)
	if perSecond > 70 {
		tb.Errorf("10000 processes send %.1f requests a second, want at most 70", perSecond)
	}
}
