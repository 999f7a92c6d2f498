package k8sstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/kubernetes"
	"github.com/traceflake/traceflake/randflake/lease"
	"github.com/traceflake/traceflake/randflake/lease/k8sstore"
	"github.com/traceflake/traceflake/randflake/lease/leasetest"
)

func BenchmarkAcquire(b *testing.B) {
	s := server(b)
	leasetest.MeasureAcquire(b, harness(s.Client(kubernetes.Admin), s.URL()))
}

// load is how many requests the processes of a fleet send.
type load struct{ start, renew float64 }

// measure starts processes and has each renew its lease once, some of them at
// once. A process is a client of its own.
func measure(tb testing.TB, processes, atOnce int) load {
	tb.Helper()
	s := server(tb)
	var requests atomic.Int64
	transport := counting{s.Client(kubernetes.Admin).Transport, &requests}
	ctx, now, name := context.Background(), time.Now(), newName()
	stores, grants := make([]*k8sstore.Store, processes), make([]lease.Grant, processes)
	var l load
	l.start = float64(inParallel(tb, processes, atOnce, &requests, func(i int) (err error) {
		if stores[i], err = k8sstore.New(&http.Client{Transport: transport}, s.URL(), namespace, k8sstore.WithName(name)); err == nil {
			grants[i], err = stores[i].Acquire(ctx, request(now))
		}
		return err
	})) / float64(processes)
	l.renew = float64(inParallel(tb, processes, atOnce, &requests, func(i int) (err error) {
		grants[i], err = stores[i].Renew(ctx, grants[i], lease.NewHolder(), now.Add(time.Hour))
		return err
	})) / float64(processes)
	return l
}

// inParallel calls f for 0 to n-1 in some order, some calls at once, and returns
// how many requests they sent.
func inParallel(tb testing.TB, n, atOnce int, requests *atomic.Int64, f func(i int) error) int64 {
	tb.Helper()
	requests.Store(0)
	order, next := rand.Perm(n), atomic.Int64{}
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for c := range atOnce {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[c] == nil; i = next.Add(1) - 1 {
				errs[c] = f(order[i])
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
	return requests.Load()
}

type counting struct {
	http.RoundTripper
	n *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// perSecond is how many requests 10000 processes send that renew every 5 minutes.
func (l load) perSecond() float64 { return 10_000 * l.renew / (lease.DefaultTTL / 2).Seconds() }

// A fleet of 10000 processes sends at most 70 requests a second.
func TestLoad(t *testing.T) {
	l := measure(t, 1000, 4) // fewer would be at once in a fleet
	t.Logf("%.3f requests to start, %.3f to renew: %.1f a second of 10000 processes", l.start, l.renew, l.perSecond())
	if l.perSecond() > 70 {
		t.Errorf("10000 processes send %.1f requests a second, want at most 70", l.perSecond())
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		l := measure(b, 10_000, 8)
		b.ReportMetric(l.start, "requests/start")
		b.ReportMetric(l.renew, "requests/renewal")
		b.ReportMetric(l.perSecond(), "requests/s")
	}
}

// BenchmarkNearlyFull counts the requests of an Acquire when 16000 of 16384
// blocks are taken.
func BenchmarkNearlyFull(b *testing.B) {
	s := server(b)
	var requests atomic.Int64
	client := &http.Client{Transport: counting{s.Client(kubernetes.Admin).Transport, &requests}}
	store, err := k8sstore.New(client, s.URL(), namespace, k8sstore.WithName(newName()))
	if err != nil {
		b.Fatal(err)
	}
	ctx, now := context.Background(), time.Now()
	acquire := func(int) error {
		_, err := store.Acquire(ctx, lease.Request{Holder: lease.NewHolder(), Now: now, TTL: time.Hour})
		return err
	}
	inParallel(b, 16_000, 64, &requests, acquire)
	for b.Loop() {
		n := inParallel(b, 300, 8, &requests, acquire)
		b.ReportMetric(float64(n)/300, "requests/acquire")
	}
}
