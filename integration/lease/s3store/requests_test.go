package s3store_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/lease/crowd"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// count counts the requests of the stores of a configuration.
func count(cfg aws.Config) (aws.Config, *crowd.Requests) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 128
	c := crowd.Count(transport)
	cfg.HTTPClient = &http.Client{Transport: c}
	return cfg, c
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
		want map[string]int
	}{
		{"open", reopen, map[string]int{}},
		// In each of 5 rounds the probe makes two gets and 8 puts, 7 of which are to be
		// refused, and 2 more at the end, and a list and a get.
		{"the first acquire", acquire, map[string]int{"GET": 1 + 11 + 1, "PUT": 42 + 1, crowd.List: 1, "412": 37}},
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

// A fleet of 10000 processes that renew every 5 minutes makes at most 70
// requests a second. At 50 ms a request about 3 renewals are under way at any
// time, and so are 4 here: what counts is how often two of them meet on a page.
func TestRequestsOfAFleet(t *testing.T) {
	cfg, c := count(config(started(t).Endpoint(), s3.Root))
	s, err := open(cfg, "fleet/", driver.AllNodes)
	if err != nil {
		t.Fatal(err)
	}
	crowd.Fleet(t, c, 1500, 4, func() (lease.Store, error) { return s, nil })
}
