//go:build unix

package s3store_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/calls"
	"github.com/traceflake/traceflake/integration/servers/s3"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/leasetest"
)

// loaded returns what n clients see, while fault happens.
func loaded(t *testing.T, cfg aws.Config, prefix string, n int, fault func() error) *leasetest.History {
	t.Helper()
	return calls.Loaded(t, n, func(nodes driver.NodeRange) (lease.Store, error) { return open(cfg, prefix, nodes) }, fault)
}

// What clients see while the server fails is linearizable, with those calls
// whose answer was lost carried out or not.
func TestFaults(t *testing.T) {
	server := started(t)
	for _, c := range []struct {
		name    string
		clients int // few, if many calls may or may not be carried out: the check tries them all
		fault   func() error
	}{
		{"killed", 2, func() error {
			if err := server.Kill(); err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return errors.Join(server.Run(), server.Wait(ctx))
		}},
		{"stopped", 3, func() error {
			if err := server.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			time.Sleep(1400 * time.Millisecond)
			return server.Signal(syscall.SIGCONT)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			leasetest.Decided(t, func(n int) *leasetest.History {
				return loaded(t, config(server.Endpoint(), s3.Root), fmt.Sprintf("fault/%s-%d", c.name, n), c.clients, c.fault)
			})
		})
	}
	t.Run("a bad network", func(t *testing.T) {
		proxy := faults.HTTP(t, http.DefaultTransport, server.Endpoint())
		leasetest.Decided(t, func(n int) *leasetest.History {
			return loaded(t, config(proxy.Endpoint(), s3.Root), fmt.Sprintf("fault/network-%d", n), 5, func() error { return nil })
		})
		proxy.Check(t)
	})
}

// A server that honours conditions on the probe's objects and ignores them on
// pages is none: the history of its clients shows it.
func TestFaultsOfAWrongServer(t *testing.T) {
	server := started(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/page-") {
			forward(t, w, r, server.Endpoint(), true, "If-Match", "If-None-Match")
			return
		}
		forward(t, w, r, server.Endpoint(), true)
	}))
	t.Cleanup(proxy.Close)
	seen := &judge{TB: t}
	loaded(t, config(proxy.URL, s3.Root), "wrong", 5, func() error { return nil }).Check(seen)
	if !seen.failed {
		t.Error("the history of a server that ignores conditions is linearizable")
	}
}

// judge notes that a check failed.
type judge struct {
	testing.TB
	failed bool
}

func (j *judge) Error(...any)          { j.failed = true }
func (j *judge) Errorf(string, ...any) { j.failed = true }
func (j *judge) Fatal(...any)          { j.failed = true }
func (j *judge) Fatalf(string, ...any) { j.failed = true }
func (j *judge) Logf(string, ...any)   {}
