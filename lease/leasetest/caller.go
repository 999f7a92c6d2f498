package leasetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// caller makes calls, one at a time and by each of its clients in turn, and compares every answer,
// and what the store has then, with the rule of driver.Block, as a [History] does.
type caller struct {
	tb        testing.TB
	clients   []driver.Store
	turn      int
	nodes     driver.NodeRange
	knowsTime bool
	ctx       context.Context // of the calls
	blocks    state           // what the store has
}

// caller returns a caller of a new store, by its clients.
func (h Harness) caller(tb testing.TB, nodes driver.NodeRange, clients ...driver.Store) *caller {
	tb.Helper()
	c := &caller{tb: tb, clients: clients, nodes: nodes, knowsTime: h.KnowsTime, ctx: context.Background(), blocks: unwritten(nodes)}
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
	if err := c.ctx.Err(); err != nil {
		return err
	}
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

// sentinels are the errors of which a refusal must have the same ones as the rule's.
var sentinels = []error{
	lease.ErrInvalidRequest, lease.ErrClockAhead, randflake.ErrBeforeEpoch, randflake.ErrEndOfLife,
	context.Canceled, context.DeadlineExceeded,
}

// same reports whether an error has the sentinel that another one has.
func same(err, want error) bool {
	for _, s := range sentinels {
		if errors.Is(want, s) {
			return errors.Is(err, s)
		}
	}
	return (err == nil) == (want == nil)
}

// call makes a call. The state of the store follows from the rule and the answer.
func (c *caller) call(in input, call func() (lease.Grant, error)) (lease.Grant, error) {
	c.tb.Helper()
	want := c.refusal(in)
	g, err := call()
	out := output{pin(g), judge(err)}
	if want != nil {
		if !same(err, want) {
			c.tb.Errorf("%s: got error %v, want %v", describe(in, out), err, want)
		}
	} else {
		next := step(c.blocks, c.nodes, in, out)
		if out.verdict == unanswered || out.verdict == judge(lease.ErrClockAhead) || len(next) == 0 {
			c.tb.Fatalf("%s: %v; the blocks were %+v", describe(in, out), err, c.blocks[:c.nodes.Blocks()])
		}
		if out.verdict == judge(lease.ErrNoFreeNode) {
			for _, b := range c.blocks[:c.nodes.Blocks()] {
				if b.Free(in.request.Now) {
					c.tb.Fatalf("%s: node %d is free", describe(in, out), b.Node)
				}
			}
		}
		c.blocks = next[0].(state)
	}
	c.compare(describe(in, out))
	if in.op == opRenew || in.op == opRelease {
		c.get(in.grant.Node)
	}
	return g, err
}

// compare compares what the store lists after a call with what it must have.
func (c *caller) compare(after string) {
	c.tb.Helper()
	blocks := c.list()
	for _, want := range c.blocks[:c.nodes.Blocks()] {
		if want.Version == 0 {
			continue
		}
		if len(blocks) == 0 || pin(blocks[0]) != lease.Grant(want) {
			for _, got := range blocks {
				if got.Node == want.Node && got.Version < want.Version {
					c.tb.Errorf("node %d has version %d, and had %d: versions go back", want.Node, got.Version, want.Version-1)
				}
			}
			if len(blocks) == 0 || blocks[0].Node > want.Node {
				c.tb.Errorf("node %d is not listed, and had version %d: a block that was written is kept for ever, or its versions begin again", want.Node, want.Version-1)
			}
			c.tb.Fatalf("after %s: list: got %+v, want %+v first", after, blocks, want)
		}
		blocks = blocks[1:]
	}
	if len(blocks) > 0 {
		c.tb.Fatalf("after %s: list: %+v were never written", after, blocks)
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
	return c.watched().Acquire(c.ctx, r)
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
	return c.watched().Renew(c.ctx, g, r)
}

func (c *caller) release(g lease.Grant, nonce string, unused time.Time) {
	c.tb.Helper()
	_ = c.watched().Release(c.ctx, g, nonce, unused)
}

func (c *caller) get(node uint32) lease.Grant {
	c.tb.Helper()
	g, _ := c.watched().Get(c.ctx, node)
	return g
}

func (c *caller) raise(until time.Time) {
	c.tb.Helper()
	want := c.ctx.Err()
	if want == nil {
		want = driver.CheckRaise(until)
	}
	got, err := c.next().Raise(c.ctx, until)
	if !same(err, want) {
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
