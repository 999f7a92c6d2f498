package leasetest

import (
	"context"
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// caller makes calls, one at a time, and compares every answer, and what the store has then, with
// the rule of driver.Block, as a [History] does.
type caller struct {
	tb        rapid.TB
	store     driver.Store
	nodes     driver.NodeRange
	knowsTime bool
	ctx       context.Context // of the calls
	blocks    state           // what the store has
}

// caller returns a caller of a new storage.
func (h Harness) caller(tb rapid.TB, s driver.Store, nodes driver.NodeRange) *caller {
	tb.Helper()
	c := &caller{tb: tb, store: s, nodes: nodes, knowsTime: h.KnowsTime, ctx: context.Background(), blocks: unwritten(nodes)}
	for _, b := range c.list() { // one that was raised when it was created has them
		if i, err := nodes.Index(b.Node); err == nil {
			c.blocks[i] = driver.Block(b)
		}
	}
	return c
}

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
	out := output{grant: pin(g), verdict: judge(err)}
	if want != nil {
		if !same(err, want) {
			c.tb.Errorf("%s: got error %v, want %v", describe(in, out), err, want)
		}
	} else {
		next := step(c.blocks, c.nodes, in, out)
		if out.verdict == unanswered || out.verdict == ahead || len(next) == 0 {
			c.tb.Fatalf("%s: %v; the blocks were %+v", describe(in, out), err, c.blocks[:c.nodes.Blocks()])
		}
		c.blocks = next[0].(state)
	}
	c.compare(in, out)
	return g, err
}

// compare compares what the store lists with what it must have.
func (c *caller) compare(in input, out output) {
	c.tb.Helper()
	blocks := c.list()
	for _, want := range c.blocks[:c.nodes.Blocks()] {
		if want.Version == 0 {
			continue
		}
		if len(blocks) == 0 || !equal(blocks[0], lease.Grant(want)) {
			for _, got := range blocks {
				if got.Node == want.Node && got.Version < want.Version {
					c.tb.Errorf("node %d has version %d, and had %d: versions go back", want.Node, got.Version, want.Version-1)
				}
			}
			if len(blocks) == 0 || blocks[0].Node > want.Node {
				c.tb.Errorf("node %d is not listed, and had version %d: a block that was written is kept for ever, or its versions begin again", want.Node, want.Version-1)
			}
			c.tb.Fatalf("after %s: list: got %+v, want %+v first", describe(in, out), blocks, want)
		}
		blocks = blocks[1:]
	}
	if len(blocks) > 0 {
		c.tb.Fatalf("after %s: list: %+v were never written", describe(in, out), blocks)
	}
}

func (c *caller) list() []lease.Grant {
	c.tb.Helper()
	blocks, err := c.store.List(context.Background())
	if err != nil {
		c.tb.Fatalf("list: %v", err)
	}
	return blocks
}

func (c *caller) acquire(r lease.Request) (lease.Grant, error) {
	c.tb.Helper()
	return c.call(input{op: opAcquire, request: r}, func() (lease.Grant, error) { return c.store.Acquire(c.ctx, r) })
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
	got, err := c.call(input{op: opRenew, grant: g, request: r}, func() (lease.Grant, error) { return c.store.Renew(c.ctx, g, r) })
	c.get(g.Node)
	return got, err
}

func (c *caller) release(g lease.Grant, nonce string, unused time.Time) {
	c.tb.Helper()
	in := input{op: opRelease, grant: g, request: lease.Request{Nonce: nonce}, unused: unused}
	_, _ = c.call(in, func() (lease.Grant, error) { return lease.Grant{}, c.store.Release(c.ctx, g, nonce, unused) })
	c.get(g.Node)
}

func (c *caller) get(node uint32) lease.Grant {
	c.tb.Helper()
	in := input{op: opGet, grant: lease.Grant{Lease: randflake.Lease{Node: node}}}
	g, _ := c.call(in, func() (lease.Grant, error) { return c.store.Get(c.ctx, node) })
	return g
}

func (c *caller) raise(until time.Time) {
	c.tb.Helper()
	want := c.ctx.Err()
	if want == nil {
		want = driver.CheckRaise(until)
	}
	got, err := c.store.Raise(c.ctx, until)
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
	c.compare(input{op: "raise", unused: until}, output{verdict: judge(err)})
}
