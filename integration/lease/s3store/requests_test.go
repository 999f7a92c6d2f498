package s3store_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"

	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// counted returns a configuration whose requests are counted.
func counted(tb testing.TB, transport http.RoundTripper) (aws.Config, *calls.Transport) {
	tb.Helper()
	cfg, c := config(started(tb).Endpoint(), s3.Root), &calls.Transport{RoundTripper: transport}
	cfg.HTTPClient = &http.Client{Transport: c}
	return cfg, c
}

// Those of a process and of a fleet are in docs/operating.md.
func TestRequests(t *testing.T) {
	cfg, c := counted(t, http.DefaultTransport)
	calls.Costs(t, storage(cfg, "requests").Open, &c.N, map[string]int64{
		"start": 1, "acquire": 2, "acquire again": 1, "renew": 2, "get": 1, "release": 2,
	})
}

// slow is a network on which a read takes 30 ms and a write 60.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(map[string]time.Duration{http.MethodGet: 30 * time.Millisecond, http.MethodPut: 60 * time.Millisecond}[r.Method])
	return http.DefaultTransport.RoundTrip(r)
}

// A process has its first lease within a second.
func TestFirstLeaseOverASlowNetwork(t *testing.T) {
	cfg, _ := counted(t, slow{})
	stored := storage(cfg, "slow")
	stored.Create(t, lease.Description{})
	secret, err := randflake.NewCodec(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	keeper, err := lease.Start(t.Context(), stored.Client(t), secret)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keeper.Close(t.Context()) }()
	if err := keeper.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the first lease took %s, want at most 1s", took)
	}
}

// A fleet of 10000 processes that renew every 5 minutes makes at most 70
// requests a second. At 50 ms a request about 3 renewals are under way at any
// time, and so are 4 here: what counts is how often two of them meet on a page.
func TestRequestsOfAFleet(t *testing.T) {
	const processes, atOnce = 1500, 4
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 128
	cfg, c := counted(t, transport)
	stored := storage(cfg, "fleet")
	stored.Create(t, lease.Description{})
	s := stored.Client(t)
	grants, now := make([]lease.Grant, processes), time.Now()
	order := rand.Perm(processes)
	each := func(f func(i int) error) int64 {
		c.N.Store(0)
		var all errgroup.Group
		all.SetLimit(atOnce)
		for _, i := range order {
			all.Go(func() error { return f(i) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		return c.N.Load()
	}
	start := each(func(i int) (err error) {
		grants[i], err = s.Acquire(context.Background(), calls.Request(now))
		return err
	})
	renew := each(func(i int) (err error) {
		grants[i], err = s.Renew(context.Background(), grants[i], calls.Renewal(grants[i]))
		return err
	})
	perSecond := 10_000 * float64(renew) / processes / (lease.DefaultTTL / 2).Seconds()
	t.Logf("%d requests to acquire, %d to renew: %.1f a second of 10000 processes", start, renew, perSecond)
	if perSecond > 70 {
		t.Errorf("10000 processes send %.1f requests a second, want at most 70", perSecond)
	}
}
