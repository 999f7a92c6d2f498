package lease_test

import (
	"context"
	"errors"
	"fmt"
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
		"a restored machine":  {func(b *bench) { b.machine++ }, lease.ErrCloned},
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

// The context ends a tenth of the TTL before the lease that the store has acknowledged, even if a
// call to the store is in flight then, and also if that succeeds later. Other nodes are leased as
// soon as the store answers. A TTL that is the store's longest is reported.
func TestNodesEndEarly(t *testing.T) {
	for name, renew := range map[string]func(*call){
		"refuses": fails(errAway),
		"hangs": func(c *call) {
			<-c.ctx.Done()
			c.err = c.ctx.Err()
		},
		"renews late": func(c *call) {
			time.Sleep(time.Until(c.grant.End) - 200*time.Millisecond)
			c.send()
		},
	} {
		inTime(t, func(t *testing.T) {
			store := &fakeStore{Store: memstore.New(lease.Description{Nodes: 4, BlockSize: 1,
				LongestTTL: 4 * time.Second}, nil)}
			store.on = func(c *call) {
				if c.op == "renew" && c.grant.Node == 0 && len(store.asked("renew")) > 3 {
					renew(c)
				} else {
					c.send()
				}
			}
			var reports []error
			k := must(lease.Start(t.Context(), store, nil,
				lease.WithMeterProvider(noop.NewMeterProvider()),
				lease.WithErrorHandler(func(err error) { reports = append(reports, err) })))
			n := must(k.Nodes(t.Context()))
			<-n.Context().Done()
			if left := time.Until(n.Until()); left != 400*time.Millisecond ||
				!errors.Is(context.Cause(n.Context()), randflake.ErrLeaseExpired) ||
				time.Since(testStart) < 7*time.Second {
				t.Errorf("a store that %s: the context ended %s before the lease, after %s: %v",
					name, left, time.Since(testStart), context.Cause(n.Context()))
			}
			time.Sleep(5 * time.Second)
			if next := must(k.Nodes(t.Context())); next.First == n.First || n.Hold(time.Now()) {
				t.Errorf("a store that %s: %+v are held again", name, n)
			}
			k.Close()
			if text := errors.Join(reports...).Error(); strings.Count(text, "at most 4s") != 1 {
				t.Errorf("reported %s", text)
			}
		})
	}
}

// Processes on one store that are copied and stopped, and whose clocks are stepped, never use a
// number at once if they respect Hold.
func TestNodesOfClones(t *testing.T) {
	memory := memstore.New(lease.Description{Nodes: 3, BlockSize: 1}, nil)
	processes := []*bench{newBenchOn(t, memory), newBenchOn(t, memory), newBenchOn(t, memory)}
	held := make([]*lease.Nodes, len(processes))
	used := map[string]int{} // by whom a node was used in a millisecond
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
				b.machine++
			case 5:
				b.clock.Add(time.Duration(step%30) * time.Second) // it was stopped
			}
			b.clock.Add(10 * time.Millisecond)
			if step%5 == 0 {
				b.Step(t.Context())
			}
			if (held[i] == nil || held[i].Context().Err() != nil) && b.Published() != nil {
				held[i], _ = b.Nodes(t.Context())
			}
			at := b.clock.Now()
			if held[i] == nil || !held[i].Hold(at) {
				continue
			}
			id := fmt.Sprint(held[i].First, " ", at.UnixMilli())
			if other, twice := used[id]; twice && other != i {
				t.Fatalf("processes %d and %d both used %s", other, i, id)
			}
			used[id] = i
		}
	}
	if len(used) < 20_000 {
		t.Errorf("only %d numbers were used", len(used))
	}
}
