package rowtest

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

// history records the calls of clients to one store of [few] blocks and checks that they are
// linearizable: some order of the calls follows the rules of [driver.Block] from an empty store, and
// in it no call precedes one that was answered before it began.
//
// A call with an error other than the contract's refusals, for instance a lost connection, may
// have been executed at any time after it began, or not. With more clients and such calls the check
// takes longer.
type history struct {
	zero time.Time

	mu    sync.Mutex
	calls []porcupine.Operation
}

// count returns the number of calls, and the number of unanswered ones.
func (h *history) count() (calls, unknown int) {
	for _, c := range h.calls {
		if c.Output.(output).verdict == unanswered {
			unknown++
		}
	}
	return len(h.calls), unknown
}

// check fails tb if the history is not linearizable. It reports whether that could be decided within
// the timeout: the time grows exponentially with the calls that had no answer.
func (h *history) check(tb testing.TB, timeout time.Duration) (decided bool) {
	tb.Helper()
	rule := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{unwritten(few)} },
		Step:              func(s, in, out any) []any { return step(s.(state), few, in.(input), out.(output)) },
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
	}
	m := rule.ToModel()
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

func (h *history) record(client int, in input, call func() (lease.Grant, error)) (lease.Grant, error) {
	began := time.Since(h.zero)
	g, err := call()
	ended := time.Since(h.zero)
	out := output{pin(g), judge(err)}
	if out.verdict == unanswered {
		if in.op == opGet {
			return g, err // it has no information
		}
		ended = math.MaxInt64
		defer time.Sleep(pauseUnanswered)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(began), Return: int64(ended)})
	return g, err
}

// watched is a store whose calls pass through a function.
type watched struct {
	lease.Store
	call func(in input, call func() (lease.Grant, error)) (lease.Grant, error)
}

func (w watched) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	return w.call(input{op: opAcquire, request: r}, func() (lease.Grant, error) { return w.Store.Acquire(ctx, r) })
}

func (w watched) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	return w.call(input{op: opRenew, grant: g, request: r}, func() (lease.Grant, error) { return w.Store.Renew(ctx, g, r) })
}

func (w watched) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	in := input{op: opRelease, grant: g, request: lease.Request{Nonce: nonce}, unused: unused}
	_, err := w.call(in, func() (lease.Grant, error) { return lease.Grant{}, w.Store.Release(ctx, g, nonce, unused) })
	return err
}

func (w watched) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	in := input{op: opGet, grant: lease.Grant{Lease: randflake.Lease{Node: node}}}
	return w.call(in, func() (lease.Grant, error) { return w.Store.Get(ctx, node) })
}

type op string

const (
	opAcquire op = "acquire"
	opRenew   op = "renew"
	opRelease op = "release"
	opGet     op = "get"
	opRaise   op = "raise"
)

type input struct {
	op      op
	request lease.Request // of a release only its nonce
	grant   lease.Grant   // of a get only its node
	unused  time.Time     // of a raise the time to which the store is raised
}

// refusals are the errors of calls that have written nothing. Any other call with an error may have
// been carried out: it is unanswered.
var refusals = []error{
	lease.ErrNoFreeNode, lease.ErrLost, lease.ErrInvalidRequest, lease.ErrClockAhead, lease.ErrNoStore, lease.ErrReplaced,
	randflake.ErrBeforeEpoch, randflake.ErrEndOfLife,
}

// verdict is the text of a refusal, unanswered, or "" for a call that was carried out.
type verdict string

const unanswered verdict = "no answer"

func judge(err error) verdict {
	for _, r := range refusals {
		if errors.Is(err, r) {
			return verdict(r.Error())
		}
	}
	if err != nil {
		return unanswered
	}
	return ""
}

type output struct {
	grant   lease.Grant
	verdict verdict
}

func (o output) String() string {
	if o.verdict != "" {
		return string(o.verdict)
	}
	return "ok " + show(o.grant)
}

// pin converts times to a form that can be compared with ==.
func pin(g lease.Grant) lease.Grant {
	g.Start, g.End = g.Start.UTC(), g.End.UTC()
	return g
}

// state is the blocks of a store, at most eight. It is comparable, so that the checker can compare
// states with ==.
type state [8]driver.Block

// unwritten returns the state of an empty store.
func unwritten(d lease.Description) (s state) {
	nodes := driver.RangeOf(d)
	for i := range nodes.Blocks() {
		s[i] = nodes.Block(i)
	}
	return s
}

func describe(i input, o output) string {
	return fmt.Sprintf("%s(%s, %+v, %s) → %s", i.op, show(i.grant), i.request, clock(i.unused), o)
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

func show(g lease.Grant) string {
	if g == (lease.Grant{}) {
		return ""
	}
	return fmt.Sprintf("[node %d, %s to %s, %.6s, version %d]", g.Node, clock(g.Start), clock(g.End), g.Nonce, g.Version)
}

// step returns the states that a call with this output may leave, or none if the output is wrong.
func step(s state, about lease.Description, in input, out output) (next []any) {
	allow := func(s state, g lease.Grant, err error) {
		wrote := err == nil && (in.op == opRelease || in.op == opRaise)
		if out.verdict == unanswered || out.verdict == judge(err) && (wrote || err != nil || out.grant == g) {
			next = append(next, s)
		}
	}
	nodes, r := driver.RangeOf(about), driver.Shorten(in.request, about)
	var err error
	switch in.op {
	case opAcquire, opRenew:
		err = driver.CheckRequest(in.request, time.Time{})
	case opRaise:
		err = driver.CheckRaise(in.unused)
	}
	if err != nil {
		allow(s, lease.Grant{}, err)
		return next
	}
	allow(s, lease.Grant{}, lease.ErrClockAhead) // whatever the state
	switch in.op {
	case opRaise:
		for i := range nodes.Blocks() {
			s[i] = s[i].Raise(in.unused)
		}
		allow(s, lease.Grant{}, nil)
		return next
	case opAcquire:
		// A client whose nonce a block has may be given its grant again, or another block. One that
		// finds none may have missed a block that was released meanwhile.
		allow(s, lease.Grant{}, lease.ErrNoFreeNode)
		for i, b := range s[:nodes.Blocks()] {
			if b.Nonce == r.Nonce {
				allow(s, lease.Grant(b), nil)
			}
			if granted, err := b.Acquire(r); err == nil {
				written := s
				written[i] = granted
				allow(written, lease.Grant(granted), nil)
			}
		}
		return next
	}
	i, err := nodes.Index(in.grant.Node)
	if err == nil {
		switch in.op {
		case opRenew:
			s[i], err = s[i].Renew(in.grant, r)
		case opRelease:
			s[i], err = s[i].Release(in.grant, r.Nonce, in.unused)
		}
	}
	allow(s, lease.Grant(s[i]), err)
	return next
}
