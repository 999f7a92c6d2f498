package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

// History records the calls of clients to one storage and checks that they are linearizable: some
// order of the calls follows the rules of [driver.Block] from an empty store, and in it no call
// precedes one that was answered before it began.
//
// A call with an error other than the contract's refusals, for instance a lost connection, may
// have been executed at any time after it began, or not.
type History struct {
	nodes driver.NodeRange
	zero  time.Time

	mu      sync.Mutex
	clients int
	calls   []porcupine.Operation
}

// NewHistory returns an empty history for a storage with few nodes: at most maxBlocks blocks. With
// more blocks, clients and unanswered calls, Check takes longer.
func NewHistory(nodes driver.NodeRange) *History {
	if nodes.Blocks() > maxBlocks {
		panic(fmt.Sprintf("leasetest: a history of %d blocks, want at most %d", nodes.Blocks(), maxBlocks))
	}
	return &History{nodes: nodes, zero: time.Now()}
}

const maxBlocks = 8

// Client returns a client that records the calls to s. Each client is for one goroutine.
func (h *History) Client(s lease.Store) lease.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients++
	return &recorded{Store: s, history: h, id: h.clients - 1}
}

// Len returns the number of calls so far, and the number of unanswered ones.
func (h *History) Len() (calls, unknown int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if c.Output.(output).verdict == unanswered {
			unknown++
		}
	}
	return len(h.calls), unknown
}

// Check fails tb if the history is not linearizable, or if that cannot be decided within a minute.
func (h *History) Check(tb testing.TB) {
	tb.Helper()
	if !h.CheckWithin(tb, time.Minute) {
		tb.Errorf("linearizability of %d calls: not decided within a minute", len(h.calls))
	}
}

// CheckWithin fails tb if the history is not linearizable. It reports whether that could be decided
// within the timeout: the time grows exponentially with the calls that had no answer. See [Faults].
func (h *History) CheckWithin(tb testing.TB, timeout time.Duration) (decided bool) {
	tb.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	m := model(h.nodes)
	switch porcupine.CheckOperationsTimeout(m, h.calls, timeout) {
	case porcupine.Ok:
		return true
	case porcupine.Unknown:
		return false
	}
	tb.Errorf("the history of %d calls is not linearizable:", len(h.calls))
	for _, c := range h.calls {
		tb.Logf("client %d %6d–%6d µs: %s", c.ClientId, c.Call/1000, min(c.Return, c.Call+math.MaxInt32)/1000, m.DescribeOperation(c.Input, c.Output))
	}
	return true
}

// pauseUnanswered is how long a client waits after a call without an answer. Each such call doubles
// what a check may have to try, and while a server is down every call is one.
const pauseUnanswered = 300 * time.Millisecond

type recorded struct {
	lease.Store
	history *History
	id      int
}

func (c *recorded) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	return c.record(input{op: opAcquire, request: r}, func() (lease.Grant, error) { return c.Store.Acquire(ctx, r) })
}

func (c *recorded) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	return c.record(input{op: opRenew, grant: g, request: r}, func() (lease.Grant, error) { return c.Store.Renew(ctx, g, r) })
}

func (c *recorded) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	in := input{op: opRelease, grant: g, request: lease.Request{Nonce: nonce}, unused: unused}
	_, err := c.record(in, func() (lease.Grant, error) { return lease.Grant{}, c.Store.Release(ctx, g, nonce, unused) })
	return err
}

func (c *recorded) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	in := input{op: opGet, grant: lease.Grant{Lease: randflake.Lease{Node: node}}}
	return c.record(in, func() (lease.Grant, error) { return c.Store.Get(ctx, node) })
}

func (c *recorded) record(in input, call func() (lease.Grant, error)) (lease.Grant, error) {
	began := time.Since(c.history.zero)
	g, err := call()
	ended := time.Since(c.history.zero)
	out := output{grant: pin(g), verdict: judge(err)}
	if out.verdict == unanswered {
		if in.op == opGet {
			return g, err // it has no information
		}
		ended = math.MaxInt64
		defer time.Sleep(pauseUnanswered)
	}
	c.history.mu.Lock()
	defer c.history.mu.Unlock()
	c.history.calls = append(c.history.calls, porcupine.Operation{
		ClientId: c.id, Input: in, Output: out, Call: int64(began), Return: int64(ended),
	})
	return g, err
}

type op string

const (
	opAcquire op = "acquire"
	opRenew   op = "renew"
	opRelease op = "release"
	opGet     op = "get"
)

type input struct {
	op      op
	request lease.Request // of a release only its nonce
	grant   lease.Grant   // of a get only its node
	unused  time.Time
}

type verdict string

const (
	granted    verdict = "ok"
	noFreeNode verdict = "no free node"
	lost       verdict = "lost"
	invalid    verdict = "invalid"
	ahead      verdict = "clock ahead" // wrote nothing, whatever the state
	unanswered verdict = "no answer"
)

func judge(err error) verdict {
	switch {
	case err == nil:
		return granted
	case errors.Is(err, lease.ErrNoFreeNode):
		return noFreeNode
	case errors.Is(err, lease.ErrLost):
		return lost
	case errors.Is(err, lease.ErrInvalidRequest):
		return invalid
	case errors.Is(err, lease.ErrClockAhead):
		return ahead
	}
	return unanswered
}

type output struct {
	verdict verdict
	grant   lease.Grant
}

// pin converts times to a form that can be compared with ==.
func pin(g lease.Grant) lease.Grant {
	g.Start, g.End = g.Start.UTC(), g.End.UTC()
	return g
}

// state is comparable, so that the checker can compare states with ==.
type state [maxBlocks]driver.Block

// model returns the behaviour of a storage by the rules of driver.Block.
func model(nodes driver.NodeRange) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{unwritten(nodes)} },
		Step:              func(s, in, out any) []any { return step(s.(state), nodes, in.(input), out.(output)) },
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
	}
	return m.ToModel()
}

// unwritten returns the state of an empty store.
func unwritten(nodes driver.NodeRange) (s state) {
	for i := range nodes.Blocks() {
		s[i] = nodes.Block(i)
	}
	return s
}

func describe(i input, o output) string {
	if i.op == opAcquire {
		return fmt.Sprintf("acquire(%s for %s by %.6s) → %s %s", clock(i.request.Now), i.request.TTL, i.request.Nonce, o.verdict, show(o.grant))
	}
	return fmt.Sprintf("%s(%s, %+v, %s) → %s %s", i.op, show(i.grant), i.request, clock(i.unused), o.verdict, show(o.grant))
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

func show(g lease.Grant) string {
	if g == (lease.Grant{}) {
		return ""
	}
	return fmt.Sprintf("[node %d, %s to %s, %.6s, version %d]", g.Node, clock(g.Start), clock(g.End), g.Nonce, g.Version)
}

// step returns the states that a call with this output may leave, or none if the output is wrong.
func step(s state, nodes driver.NodeRange, in input, out output) []any {
	if out.verdict == ahead {
		return []any{s}
	}
	if in.op == opAcquire {
		return stepAcquire(s, nodes.Blocks(), in.request, out)
	}
	i, err := nodes.Index(in.grant.Node)
	if err != nil {
		return nil
	}
	next := s[i]
	switch in.op {
	case opRenew:
		next, err = s[i].Renew(in.grant, in.request)
	case opRelease:
		next, err = s[i].Release(in.grant, in.request.Nonce, in.unused)
	}
	if out.verdict == unanswered {
		if err != nil || next == s[i] {
			return []any{s}
		}
		written := s
		written[i] = next
		return []any{s, written}
	}
	if out.verdict != judge(err) {
		return nil
	}
	if err != nil {
		return []any{s}
	}
	if in.op != opRelease && out.grant != lease.Grant(next) {
		return nil
	}
	s[i] = next
	return []any{s}
}

func stepAcquire(s state, n int, r lease.Request, out output) []any {
	// A client whose nonce a block has may be given its grant again, or another block.
	var states []any
	if out.verdict == unanswered {
		states = append(states, s)
	}
	for _, b := range s[:n] {
		if b.Nonce == r.Nonce && out.verdict == granted && out.grant == lease.Grant(b) {
			states = append(states, s)
		}
	}
	free := 0
	for i, b := range s[:n] {
		next, err := b.Acquire(r)
		if err != nil {
			continue
		}
		free++
		if out.verdict == granted && out.grant.Node == b.Node && shorter(out.grant, lease.Grant(next)) {
			next.End = out.grant.End
		} else if out.verdict != unanswered && out.grant != lease.Grant(next) {
			continue
		}
		written := s
		written[i] = next
		states = append(states, written)
	}
	if out.verdict == noFreeNode && free == 0 {
		return []any{s}
	}
	return states
}

// shorter reports whether got is want with fewer seconds, but at least one: a store may grant less
// than requested.
func shorter(got, want lease.Grant) bool {
	if !got.End.After(got.Start) || !got.End.Before(want.End) {
		return false
	}
	want.End = got.End
	return got == want
}

// secondsOf holds every second of every grant; none may be granted twice.
type secondsOf map[uint32][]randflake.Lease

// add returns an earlier grant that overlaps l, if there is one.
func (s secondsOf) add(l randflake.Lease) (other randflake.Lease, overlaps bool) {
	for _, o := range s[l.Node] {
		if l.Start.Before(o.End) && o.Start.Before(l.End) {
			return o, true
		}
	}
	s[l.Node] = append(s[l.Node], l)
	return randflake.Lease{}, false
}
