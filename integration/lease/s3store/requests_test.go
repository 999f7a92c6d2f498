package s3store_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// count counts the requests of the stores of a configuration.
func count(cfg aws.Config) (aws.Config, *calls.Requests) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 128
	c := calls.Count(transport)
	cfg.HTTPClient = &http.Client{Transport: c}
	return cfg, c
}

// What a process costs that is alone, each step.
func TestRequests(t *testing.T) {
	server := started(t)
	cfg, c := count(config(server.Endpoint(), s3.Root))
	ctx, now := t.Context(), time.Now()
	stored := storage(cfg, "requests/")
	stored.Create(t, lease.Description{Nodes: 4 * 64 * 8})
	t.Logf("create: %v", c.Take())
	s := stored.Client(t)
	var g lease.Grant
	acquire := func() (err error) {
		g, err = s.Acquire(ctx, calls.Request(now))
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
		want map[string]int
	}{
		{"a start", func() error { _, err := s.Describe(ctx); return err }, map[string]int{"GET": 1}},
		{"acquire", acquire, map[string]int{"GET": 1, "PUT": 1}},
		{"renew", func() (err error) { g, err = s.Renew(ctx, g, calls.Renewal(lease.NewNonce(), g.End)); return err }, map[string]int{"GET": 1, "PUT": 1}},
		{"get", func() error { _, err := s.Get(ctx, g.Node); return err }, map[string]int{"GET": 1}},
		{"release", func() error { return s.Release(ctx, g, lease.NewNonce(), now) }, map[string]int{"GET": 1, "PUT": 1}},
	} {
		c.Take()
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := c.Take(); fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%s: %v, want %v", step.name, got, step.want)
		}
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A process has its first lease within a second, if a read takes 30 ms and a write 60.
func TestFirstLeaseOverASlowNetwork(t *testing.T) {
	server := started(t)
	cfg := config(server.Endpoint(), s3.Root)
	storage(cfg, "slow/").Create(t, lease.Description{})
	cfg.HTTPClient = &http.Client{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		time.Sleep(map[string]time.Duration{http.MethodGet: 30 * time.Millisecond, http.MethodPut: 60 * time.Millisecond}[r.Method])
		return http.DefaultTransport.RoundTrip(r)
	})}
	secret, err := randflake.NewCodec(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	keeper, err := lease.Start(t.Context(), storage(cfg, "slow/").Client(t), secret)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keeper.Close(t.Context()) }()
	if err := keeper.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	t.Logf("the first lease after %s", took)
	if took > time.Second {
		t.Errorf("the first lease took %s, want at most 1s", took)
	}
}

// A fleet of 10000 processes that renew every 5 minutes makes at most 70
// requests a second. At 50 ms a request about 3 renewals are under way at any
// time, and so are 4 here: what counts is how often two of them meet on a page.
func TestRequestsOfAFleet(t *testing.T) {
	cfg, c := count(config(started(t).Endpoint(), s3.Root))
	stored := storage(cfg, "fleet/")
	stored.Create(t, lease.Description{})
	calls.Fleet(t, c, 1500, 4, stored.Open)
}
