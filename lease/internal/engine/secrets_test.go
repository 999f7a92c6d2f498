package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// atOnce calls f for 0 to n-1, each call in its own goroutine, and returns the errors.
func atOnce(n int, f func(i int) error) []error {
	var all sync.WaitGroup
	ready, errs := make(chan struct{}), make([]error, n)
	for i := range n {
		all.Go(func() {
			<-ready
			errs[i] = f(i)
		})
	}
	close(ready)
	all.Wait()
	return errs
}

// Secrets that operators add at once, each twice, are all there, once.
func TestAddSecretsAtOnce(t *testing.T) {
	const n = 6
	server := new(counted)
	s := open(server, 2, few(8))
	errs := atOnce(2*n, func(i int) error {
		return client(server, 2).AddSecret(context.Background(), storeID,
			fmt.Sprintf("%016x", i%n))
	})
	d, err := s.Describe(t.Context())
	slices.Sort(d.Secrets)
	if err := errors.Join(append(errs, err)...); err != nil || len(d.Secrets) != n ||
		d.Secrets[n-1] != fmt.Sprintf("%016x", n-1) {
		t.Errorf("%d secrets were added, each twice: %v; now there are %q", n, err, d.Secrets)
	}
	for _, bad := range []string{"", "0123456789abcde", "0123456789ABCDEF", "my secret"} {
		wantErr(t, "add the secret "+bad, s.AddSecret(t.Context(), storeID, bad),
			lease.ErrInvalidRequest)
	}
	wantErr(t, "add a secret of another store", s.AddSecret(t.Context(), nextID, fingerprint),
		lease.ErrReplaced)
}

// A description that is invalid creates nothing.
func TestCreateRefusesDescriptions(t *testing.T) {
	for name, change := range map[string]func(*lease.Description){
		"unaligned nodes":   func(d *lease.Description) { d.First, d.Nodes = 4, 8 },
		"a TTL of two days": func(d *lease.Description) { d.LongestTTL = 2 * lease.MaxTTL },
		"a secret, not a fingerprint": func(d *lease.Description) {
			d.Secrets = []string{"correct horse battery"}
		},
	} {
		server, d := new(counted), describe(few(8))
		change(&d)
		wantErr(t, "create with "+name, client(server, 2).Create(t.Context(), d),
			lease.ErrInvalidRequest)
		if server.Writes > 0 {
			t.Errorf("create with %s wrote", name)
		}
	}
}

// A call whose context is over returns its error, and writes nothing.
func TestContextsThatAreOver(t *testing.T) {
	server := new(counted)
	s := open(server, 2, few(8))
	g := mustAcquire(t, s, request(t0))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{done, late} {
		away := client(wire{server, func(*message, func() answer) answer {
			return answer{err: errLost}
		}}, 2)
		for _, s := range []stores.Store{s, away} {
			for _, call := range calls.OnBlocks(ctx, s, g, t0) {
				wantErr(t, call.Name, call.Err, ctx.Err())
			}
		}
	}
	if got, err := s.Get(t.Context(), g); err != nil || got != g {
		t.Errorf("now the block is %+v, %v; want %+v", got, err, g)
	}
}
