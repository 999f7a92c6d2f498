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

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/lease/crowd"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/k8sstore"
)

func BenchmarkAcquire(b *testing.B) {
	s := server(b)
	crowd.Measure(b, harness(s.Client(kubernetes.Admin), s.URL()))
}

// load is how many requests the processes of a fleet send.
type load struct{ start, renew float64 }

// measure starts processes and has each renew its lease once, some of them at
// once. A process is a client of its own.
func measure(tb testing.TB, processes, atOnce int) load {
	tb.Helper()
	s := server(tb)
	c := count(s.Client(kubernetes.Admin))
	ctx, now, name := context.Background(), time.Now(), newName()
	stores, grants := make([]*pages.Store, processes), make([]lease.Grant, processes)
	var l load
	l.start = inParallel(tb, processes, atOnce, c, func(i int) (err error) {
		if stores[i], err = k8sstore.New(&http.Client{Transport: c}, s.URL(), namespace, driver.NodeRange{}, k8sstore.WithName(name)); err == nil {
			grants[i], err = stores[i].Acquire(ctx, calls.Request(now))
		}
		return err
	})
	l.renew = inParallel(tb, processes, atOnce, c, func(i int) (err error) {
		grants[i], err = stores[i].Renew(ctx, grants[i], calls.Renewal(lease.NewNonce(), now.Add(time.Hour)))
		return err
	})
	return l
}

// inParallel calls f for 0 to n-1 in some order, some calls at once, and returns
// how many requests a call sent.
func inParallel(tb testing.TB, n, atOnce int, requests *counted, f func(i int) error) float64 {
	tb.Helper()
	requests.take()
	order, next := rand.Perm(n), atomic.Int64{}
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for id := range atOnce {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[id] == nil; i = next.Add(1) - 1 {
				errs[id] = f(order[i])
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
	sent := 0
	for _, of := range requests.take() {
		sent += of
	}
	return float64(sent) / float64(n)
}

// perSecond is how many requests 10000 processes send that renew every 5 minutes.
func (l load) perSecond() float64 { return 10_000 * l.renew / (lease.DefaultTTL / 2).Seconds() }

// A fleet of 10000 processes sends at most 70 requests a second.
func TestLoad(t *testing.T) {
	l := measure(t, 300, 4) // fewer would be at once in a fleet
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

// BenchmarkNearlyFull counts the requests of an Acquire and a Release when 16000
// of 16384 blocks are taken.
func BenchmarkNearlyFull(b *testing.B) {
	s := server(b)
	c := count(s.Client(kubernetes.Admin))
	store, err := k8sstore.New(&http.Client{Transport: c}, s.URL(), namespace, driver.NodeRange{}, k8sstore.WithName(newName()))
	if err != nil {
		b.Fatal(err)
	}
	ctx, now := context.Background(), time.Now()
	acquire := func() (lease.Grant, error) {
		return store.Acquire(ctx, lease.Request{Nonce: lease.NewNonce(), Now: now, TTL: time.Hour})
	}
	inParallel(b, 16_000, 64, c, func(int) error { _, err := acquire(); return err })
	for b.Loop() {
		b.ReportMetric(inParallel(b, 300, 8, c, func(int) error {
			g, err := acquire()
			if err != nil {
				return err
			}
			return store.Release(ctx, g, lease.NewNonce(), g.Start)
		}), "requests/pair")
	}
}
