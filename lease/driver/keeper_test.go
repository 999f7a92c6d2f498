package driver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// A process that found a store with another secret needs no restart once an operator has fixed
// that: by registering the secret, or by replacing the store.
func TestKeeperAfterAWrongSecret(t *testing.T) {
	theirs, err := randflake.NewCodec([]byte("another's secret"))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := randflake.NewCodec([]byte("a process's one."))
	if err != nil {
		t.Fatal(err)
	}
	with := func(d lease.Description, c *randflake.Codec) lease.Description {
		d.Secrets = []string{d.Fingerprint(c)}
		return d
	}
	for what, repair := range map[string]func(context.Context, *counted, driver.Store) error{
		"the secret is registered": func(ctx context.Context, _ *counted,
			operator driver.Store) error {
			return operator.AddSecret(ctx, describe(few(8)).Fingerprint(ours))
		},
		"the store is replaced": func(ctx context.Context, server *counted, _ driver.Store) error {
			server.Delete("")
			return client(server, 2).Create(ctx, with(other(), ours))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(t0))
			server := new(counted)
			operator := client(server, 2)
			if err := operator.Create(t.Context(), with(describe(few(8)), theirs)); err != nil {
				t.Fatal(err)
			}
			k, err := lease.Start(t.Context(), client(server, 2), ours,
				lease.WithErrorHandler(func(error) {}),
				lease.WithMeterProvider(noop.NewMeterProvider()))
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Ready(t.Context()); !errors.Is(err, lease.ErrWrongSecret) {
				t.Errorf("%s: the first answer is %v, want %v", what, err, lease.ErrWrongSecret)
			}
			time.Sleep(time.Hour)
			if err := repair(t.Context(), server, operator); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second) // the longest backoff
			if _, err := k.Next(); err != nil {
				t.Errorf("%s: %v: %v", what, err, k.Failure())
			}
			if err := k.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
