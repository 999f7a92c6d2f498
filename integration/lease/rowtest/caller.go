package rowtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// caller makes calls, one at a time and by each of its clients in turn, and compares every answer,
// and what the store has then, with the rule of driver.Block, as a history does.
type caller struct {
	watched
	tb        testing.TB
	clients   []driver.Store
	turn      int
	about     lease.Description
	knowsTime bool
	blocks    state // what the store has
}

// caller returns a caller of a store, by its clients.
func (h Harness) caller(tb testing.TB, about lease.Description, clients ...driver.Store) *caller {
	tb.Helper()
	c := &caller{tb: tb, clients: clients, about: about, knowsTime: h.KnowsTime, blocks: unwritten(about)}
	c.watched = watched{c.next(), c.call}
	for _, b := range c.list() { // one that was raised when it was created has them
		if i, err := driver.RangeOf(about).Index(b.Node); err == nil {
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

// current returns the blocks that the store has.
func (c *caller) current() []driver.Block { return c.blocks[:driver.RangeOf(c.about).Blocks()] }

// call makes a call. The state of the store follows from the rule and the answer.
func (c *caller) call(in input, call func() (lease.Grant, error)) (lease.Grant, error) {
	c.tb.Helper()
	ahead := c.knowsTime && errors.Is(driver.CheckRequest(in.request, time.Now()), lease.ErrClockAhead)
	g, err := call()
	out := output{pin(g), judge(err)}
	next := step(c.blocks, c.about, in, out)
	missed := out.verdict == judge(lease.ErrNoFreeNode) &&
		slices.ContainsFunc(c.current(), func(b driver.Block) bool { return b.Free(in.request.Now) })
	if len(next) == 0 || missed || out.verdict == unanswered || ahead != (out.verdict == judge(lease.ErrClockAhead)) {
		c.tb.Fatalf("%s: %v; the blocks were %+v", describe(in, out), err, c.current())
	}
	c.blocks = next[0].(state)
	c.compare(describe(in, out))
	c.Store = c.next()
	return g, err
}

// compare compares what the store lists after a call with what it must have: every block that was
// written, for ever, in order.
func (c *caller) compare(after string) {
	c.tb.Helper()
	var want []lease.Grant
	for _, b := range c.current() {
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

// granted is an Acquire that is granted.
func (c *caller) granted(r lease.Request) lease.Grant {
	c.tb.Helper()
	g, err := c.Acquire(context.Background(), r)
	if err != nil {
		c.tb.Fatalf("acquire at %s for %s: %v", r.Now, r.TTL, err)
	}
	return g
}

func (c *caller) raise(until time.Time) {
	c.tb.Helper()
	_, _ = c.call(input{op: opRaise, unused: until}, func() (lease.Grant, error) {
		got, err := c.next().Raise(context.Background(), until)
		if err == nil && (got.Before(until) || !got.Before(until.Add(time.Second))) {
			c.tb.Errorf("raise to %s: the store says that it was raised to %s", until, got)
		}
		return lease.Grant{}, err
	})
}
