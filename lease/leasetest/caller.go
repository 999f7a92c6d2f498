package leasetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// caller makes calls, one at a time and by each of its clients in turn, and compares every answer,
// and what the store has then, with the rule of driver.Block, as a history does.
type caller struct {
	tb        testing.TB
	clients   []driver.Store
	turn      int
	nodes     driver.NodeRange
	knowsTime bool
	blocks    state // what the store has
}

// caller returns a caller of a new store, by its clients.
func (h Harness) caller(tb testing.TB, nodes driver.NodeRange, clients ...driver.Store) *caller {
	tb.Helper()
	c := &caller{tb: tb, clients: clients, nodes: nodes, knowsTime: h.KnowsTime, blocks: unwritten(nodes)}
	for _, b := range c.list() { // one that was raised when it was created has them
		if i, err := nodes.Index(b.Node); err == nil {
			c.blocks[i] = driver.Block(b)
		}
	}
	return c
}

// next returns the client whose turn it is.
func (c *caller) next() driver.Store {
	c.turn++
	return c.clients[c.turn%len(c.clients)]
}

// watched returns the next client, whose calls are compared with the rule.
func (c *caller) watched() watched { return watched{c.next(), c.call} }

// refusal returns the error of a call that no state of the store allows, if it is one.
func (c *caller) refusal(in input) error {
	if in.op == opAcquire || in.op == opRenew {
		var now time.Time
		if c.knowsTime {
			now = time.Now()
		}
		if err := driver.CheckRequest(in.request, now); err != nil {
			return err
		}
	}
	if in.op != opAcquire {
		_, err := c.nodes.Index(in.grant.Node)
		return err
	}
	return nil
}

// call makes a call. The state of the store follows from the rule and the answer.
func (c *caller) call(in input, call func() (lease.Grant, error)) (lease.Grant, error) {
	c.tb.Helper()
	want := c.refusal(in)
	g, err := call()
	out := output{pin(g), judge(err)}
	if want != nil {
		if out.verdict != judge(want) {
			c.tb.Errorf("%s: got error %v, want %v", describe(in, out), err, want)
		}
	} else {
		next := step(c.blocks, c.nodes, in, out)
		missed := out.verdict == judge(lease.ErrNoFreeNode) &&
			slices.ContainsFunc(c.blocks[:c.nodes.Blocks()], func(b driver.Block) bool { return b.Free(in.request.Now) })
		if missed || out.verdict == unanswered || out.verdict == judge(lease.ErrClockAhead) || len(next) == 0 {
			c.tb.Fatalf("%s: %v; the blocks were %+v", describe(in, out), err, c.blocks[:c.nodes.Blocks()])
		}
		c.blocks = next[0].(state)
	}
	c.compare(describe(in, out))
	if in.op == opRenew || in.op == opRelease {
		c.get(in.grant.Node)
	}
	return g, err
}

// compare compares what the store lists after a call with what it must have: every block that was
// written, for ever, in order.
func (c *caller) compare(after string) {
	c.tb.Helper()
	var want []lease.Grant
	for _, b := range c.blocks[:c.nodes.Blocks()] {
		if b.Version > 0 {
			want = append(want, lease.Grant(b))
		}
	}
	if got := c.list(); !slices.EqualFunc(got, want, func(a, b lease.Grant) bool { return pin(a) == b }) {
		c.tb.Fatalf("after %s: list: got %+v, want %+v", after, got, want)
	}
}

func (c *caller) list() []lease.Grant {
	c.tb.Helper()
	blocks, err := c.next().List(context.Background())
	if err != nil {
		c.tb.Fatalf("list: %v", err)
	}
	return blocks
}

func (c *caller) acquire(r lease.Request) (lease.Grant, error) {
	c.tb.Helper()
	return c.watched().Acquire(context.Background(), r)
}

// granted is an Acquire that is granted.
func (c *caller) granted(r lease.Request) lease.Grant {
	c.tb.Helper()
	g, err := c.acquire(r)
	if err != nil {
		c.tb.Fatalf("acquire at %s for %s: %v", r.Now, r.TTL, err)
	}
	return g
}

func (c *caller) renew(g lease.Grant, r lease.Request) (lease.Grant, error) {
	c.tb.Helper()
	return c.watched().Renew(context.Background(), g, r)
}

func (c *caller) release(g lease.Grant, nonce string, unused time.Time) {
	c.tb.Helper()
	_ = c.watched().Release(context.Background(), g, nonce, unused)
}

func (c *caller) get(node uint32) lease.Grant {
	c.tb.Helper()
	g, _ := c.watched().Get(context.Background(), node)
	return g
}

func (c *caller) raise(until time.Time) {
	c.tb.Helper()
	want := driver.CheckRaise(until)
	got, err := c.next().Raise(context.Background(), until)
	if judge(err) != judge(want) {
		c.tb.Fatalf("raise to %s: got error %v, want %v", until, err, want)
	}
	if want == nil && (got.Before(until) || !got.Before(until.Add(time.Second))) {
		c.tb.Fatalf("raise to %s: the store says that it was raised to %s", until, got)
	}
	for i, b := range c.blocks[:c.nodes.Blocks()] {
		if want == nil {
			c.blocks[i] = b.Raise(until)
		}
	}
	c.compare("a raise to " + until.String())
}
