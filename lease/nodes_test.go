package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/memstore"
	"github.com/traceflake/traceflake/randflake"
)

// The context ends with the lease, which renewals extend, and at once when the lease must not be
// used any more: Hold notices a step of the clock or a restore before the Keeper does. Then no time
// is held.
func TestNodesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		happen func(*bench)
		cause  error
	}{
		"the end of the lease": {func(b *bench) {
			b.store.on = fails(errAway)
			b.pass(10 * time.Second)
		}, randflake.ErrLeaseExpired},
		"a step of the clock": {func(b *bench) { b.clock.Step(5 * time.Second) }, nil},
		"a restored machine":  {func(b *bench) { b.life++ }, lease.ErrCloned},
		"Close": {func(b *bench) {
			before := b.block(0)
			b.Close()
			b.wantBlock(before)
		}, lease.ErrClosed},
	} {
		b := newBenchOn(t, memstore.New(few, nil))
		b.pass(0)
		n, err := b.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.pass(6 * time.Second)
		if n.First != 0 || n.Count != 1 || !n.From.Equal(testStart) ||
			!n.Until().Equal(testStart.Add(15*time.Second)) {
			t.Fatalf("%+v until %s", n, n.Until())
		}
		if n.Context().Err() != nil || !n.Hold(b.clock.Now()) || n.Hold(testStart.Add(-1)) ||
			n.Hold(n.Until()) {
			t.Errorf("%s: the nodes are held at other times than the lease says", name)
		}
		c.happen(b)
		if n.Hold(b.clock.Now()) || n.Hold(testStart) {
			t.Errorf("%s: the nodes are still held", name)
		}
		if cause := context.Cause(n.Context()); cause == nil || c.cause != nil &&
			!errors.Is(cause, c.cause) {
			t.Errorf("%s: the context ended with %v, want %v", name, cause, c.cause)
		}
	}
}

// A store without a secret that was set back, or moved, begins no history: the process says what an
// operator has to do, and waits for it.
func TestNodesOfAStoreThatForgets(t *testing.T) {
	for want, happen := range map[string]func(b *bench, empty map[string][]byte){
		"then: traceflake lease rekey": func(b *bench, empty map[string][]byte) {
			b.objects.Set(empty)
		},
		"begun elsewhere": func(b *bench, _ map[string][]byte) { b.objects.Move() },
	} {
		objects, keyless := new(memstore.Objects), few
		keyless.Keyless = true
		b := newBenchOn(t, must(newMemory(t, objects, keyless)))
		b.objects = objects
		empty := b.backup()
		b.pass(0)
		b.wantError(lease.ErrKeyless)
		happen(b, empty)
		b.pass(time.Minute)
		if n, err := b.Nodes(t.Context()); err == nil || b.Codec() != nil {
			t.Errorf("it holds %+v", n)
		}
		said := errors.Join(b.reports...)
		if strings.Contains(said.Error(), "nothing is to be done") ||
			!strings.Contains(said.Error(), want) || !errors.Is(said, lease.ErrMisconfigured) {
			t.Errorf("reported %s", said)
		}
		b.rekey(nil)
		b.pass(time.Minute)
		must(b.Nodes(t.Context()))
		b.wantBegun(0, 0)
	}
}

// While the store is unavailable, the context ends a tenth of the TTL before the lease, even if a
// call to the store is in flight then. A TTL that is the store's longest is reported.
func TestNodesEndEarly(t *testing.T) {
	for name, away := range map[string]func(context.Context) error{
		"refuses": func(context.Context) error { return errAway },
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		inTime(t, func(t *testing.T) {
			d := lease.Description{LongestTTL: 4 * time.Second}
			store := &fakeStore{Store: memstore.New(d, nil)}
			store.on = func(c *call) {
				if len(store.asked("renew")) > 3 {
					c.err = away(c.ctx)
				} else {
					c.send()
				}
			}
			var reports []error
			k := openNodes(t, store,
				lease.WithErrorHandler(func(err error) { reports = append(reports, err) }))
			n, err := k.Nodes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			<-n.Context().Done()
			if left := time.Until(n.Until()); left != 400*time.Millisecond ||
				!errors.Is(context.Cause(n.Context()), randflake.ErrLeaseExpired) ||
				time.Since(testStart) < 8*time.Second {
				t.Errorf("a store that %s: the context ended %s before the lease, after %s: %v",
					name, left, time.Since(testStart), context.Cause(n.Context()))
			}
			k.Close()
			if text := errors.Join(reports...).Error(); strings.Count(text, "at most 4s") != 1 {
				t.Errorf("reported %s", text)
			}
		})
	}
}

// Nodes that ended while a renewal was in flight stay ended, even if it succeeds. Others are leased
// at once.
func TestNodesEndInARenewal(t *testing.T) {
	inTime(t, func(t *testing.T) {
		store := &fakeStore{Store: memstore.New(few, nil)}
		store.on = func(c *call) {
			if left := time.Until(c.grant.End); c.op == "renew" && left > 5*time.Second {
				c.err = errAway
				return
			} else if c.op == "renew" {
				time.Sleep(left - 500*time.Millisecond)
			}
			c.send()
		}
		k := openNodes(t, store, lease.WithTTL(20*time.Second))
		n := must(k.Nodes(t.Context()))
		<-n.Context().Done()
		time.Sleep(time.Second)
		if next, err := k.Nodes(t.Context()); err != nil || next.First == n.First {
			t.Errorf("%+v, %v, want other nodes than %+v", next, err, n)
		}
		k.Close()
	})
}

func openNodes(t *testing.T, s lease.Store, opts ...lease.Option) *lease.Keeper {
	t.Helper()
	return must(lease.Start(t.Context(), s, nil, append([]lease.Option{
		lease.WithMeterProvider(noop.NewMeterProvider())}, opts...)...))
}

// Processes on one store that are copied and stopped, and whose clocks are stepped, never use a
// number at once if they respect Hold.
func TestNodesOfClones(t *testing.T) {
	type use struct {
		node uint32
		at   int64 // milliseconds
	}
	memory := memstore.New(lease.Description{Nodes: 3, BlockSize: 1}, nil)
	var processes []*bench
	for range 3 {
		processes = append(processes, newBenchOn(t, memory))
	}
	held := make([]*lease.Nodes, len(processes))
	used, made := map[use]int{}, 0
	for step := range 20_000 {
		for i, b := range processes {
			switch (step*7 + i*13) % 997 {
			case 1:
				b.clock.Step(time.Duration(step%9-4) * time.Second)
			case 2:
				b.store.on = fails(errAway)
			case 3:
				b.store.on = nil
			case 4:
				b.life++
			case 5:
				b.clock.Add(time.Duration(step%30) * time.Second) // it was stopped
			}
			b.clock.Add(10 * time.Millisecond)
			if step%5 == 0 {
				b.Step(t.Context())
			}
			if held[i] == nil || held[i].Context().Err() != nil {
				if held[i] = nil; b.Published() != nil {
					held[i], _ = b.Nodes(t.Context())
				}
				continue
			}
			at := b.clock.Now()
			if !held[i].Hold(at) {
				continue
			}
			made++
			id := use{held[i].First, at.UnixMilli()}
			if other, twice := used[id]; twice && other != i {
				t.Fatalf("processes %d and %d both used %+v", other, i, id)
			}
			used[id] = i
		}
	}
	if made < 20_000 {
		t.Errorf("only %d numbers were used", made)
	}
}
