package rowtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
)

// wrong is a store with one flaw.
type wrong struct {
	*driver.Memory // its description; the blocks are below
	flaw           string
	first          map[string]uint32 // the node of the block that a nonce acquired
	mu             sync.Mutex
	about          lease.Description
	blocks         []driver.Block
	old            []driver.Block // the state before the last write
	writes         int
	acquiring      atomic.Bool
}

func newWrong(flaw string) *wrong {
	return &wrong{Memory: new(driver.Memory), flaw: flaw, first: map[string]uint32{}}
}

func (w *wrong) Create(ctx context.Context, d lease.Description) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.about.ID != "" && w.flaw == "creates again" {
		w.Memory, w.blocks = new(driver.Memory), nil
	}
	err := w.Memory.Create(ctx, d)
	if w.flaw == "creates beside another" && errors.Is(err, lease.ErrExists) {
		return nil
	}
	if err != nil || w.blocks != nil {
		return err
	}
	if d.First > 0 && w.flaw == "forgets the node range" {
		d.First = 0
	}
	w.about = d
	for i := range w.nodes().Blocks() {
		b := w.nodes().Block(i)
		if !d.Raised.IsZero() && w.flaw != "grants what another store may have granted" {
			b = b.Raise(d.Raised)
		}
		w.blocks = append(w.blocks, b)
	}
	w.old = slices.Clone(w.blocks)
	return nil
}

func (w *wrong) AddSecret(ctx context.Context, fingerprint string) error {
	if w.flaw == "forgets secrets" && strings.HasSuffix(fingerprint, "3") {
		return nil
	}
	return w.Memory.AddSecret(ctx, fingerprint)
}

func (w *wrong) Close(ctx context.Context) error {
	if w.flaw == "waits when it is closed" && ctx.Err() != nil {
		time.Sleep(2500 * time.Millisecond)
	}
	return nil
}

func (w *wrong) shorten(r lease.Request) lease.Request {
	if w.flaw == "ignores the longest TTL" {
		return r
	}
	return driver.Shorten(r, w.about)
}

func (w *wrong) nodes() driver.NodeRange { return driver.RangeOf(w.about) }

// begin fails if there is no store yet.
func (w *wrong) begin(ctx context.Context) error {
	if w.flaw == "ignores the context" {
		ctx = context.Background()
	}
	_, err := w.Describe(ctx)
	if errors.Is(err, lease.ErrNoStore) && w.flaw == "is created by any call" {
		d, _ := driver.NewDescription(lease.Description{})
		return w.Create(ctx, d)
	}
	return err
}

// flaw is a mistake, and the checks that must detect it.
type flaw struct {
	checks []string // nil: the check of calls
	op     op
	before func(b *driver.Block, in *input)               // what the store takes for a block and a call
	after  func(was, next *driver.Block, until time.Time) // what it makes of the block's next state
}

// The flaws without functions are where the store looks for their names.
var flaws = map[string]flaw{
	"frees blocks at their start": {[]string{"calls", "linearizable"}, opAcquire, func(b *driver.Block, in *input) {
		if b.Start.Unix() < in.request.Now.Unix() {
			b.End = time.Time{}
		}
	}, nil},
	"inclusive end": {nil, opAcquire, func(b *driver.Block, _ *input) {
		if !b.End.IsZero() {
			b.End = b.End.Add(time.Second)
		}
	}, nil},
	"free one second early": {nil, opAcquire, func(b *driver.Block, _ *input) {
		b.End = b.End.Add(-time.Second)
	}, nil},
	"rounds the clock up": {nil, opAcquire, func(_ *driver.Block, in *input) {
		in.request.Now = in.request.Now.Add(time.Second - 1)
	}, nil},
	"grants more than requested": {nil, opAcquire, nil, func(_, next *driver.Block, _ time.Time) { next.End = next.End.Add(time.Second) }},
	"loses the owner":            {nil, opAcquire, nil, func(_, next *driver.Block, _ time.Time) { next.Owner = "" }},

	"renews any version":   {nil, opRenew, anyVersion, nil},
	"renews for any nonce": {nil, opRenew, anyNonce, nil},
	"renewal needs a live grant": {nil, opRenew, func(b *driver.Block, in *input) {
		if in.request.Now.Add(in.request.TTL).Sub(b.End) > 5*time.Second {
			b.Nonce = ""
		}
	}, nil},
	"renewal shortens": {nil, opRenew, func(b *driver.Block, in *input) {
		if end := in.request.Now.Add(in.request.TTL); end.After(b.Start) {
			b.End = b.Start
		}
	}, nil},
	"renewal keeps the version": {nil, opRenew, nil, func(was, next *driver.Block, _ time.Time) { next.Version = was.Version }},
	"renewal keeps the nonce":   {nil, opRenew, nil, func(was, next *driver.Block, _ time.Time) { next.Nonce = was.Nonce }},
	"renewal loses the owner":   {nil, opRenew, nil, func(_, next *driver.Block, _ time.Time) { next.Owner = "" }},
	"renewal writes only if the end grows": {nil, opRenew, nil, func(was, next *driver.Block, _ time.Time) {
		if next.End.Equal(was.End) {
			*next = *was
		}
	}},
	"renewal writes the nonce but no unchanged end": {nil, opRenew, nil, func(was, next *driver.Block, _ time.Time) {
		if next.End.Equal(was.End) {
			next.Version = was.Version
		}
	}},

	"releases any version":   {nil, opRelease, anyVersion, nil},
	"releases for any nonce": {nil, opRelease, anyNonce, nil},
	"release rounds down": {nil, opRelease, func(_ *driver.Block, in *input) {
		in.unused = in.unused.Truncate(time.Second)
	}, nil},
	"release returns used seconds": {nil, opRelease, nil, func(was, next *driver.Block, _ time.Time) { next.End = was.Start }},
	"release keeps the nonce":      {nil, opRelease, nil, func(was, next *driver.Block, _ time.Time) { next.Nonce = was.Nonce }},
	"release empties the nonce":    {nil, opRelease, nil, func(_, next *driver.Block, _ time.Time) { next.Nonce = "" }},
	"release keeps the owner":      {nil, opRelease, nil, func(was, next *driver.Block, _ time.Time) { next.Owner = was.Owner }},
	"release deletes the block": {nil, opRelease, nil, func(was, next *driver.Block, _ time.Time) {
		*next = driver.RangeOf(few).Block(int(was.Node / few.BlockSize)) // as a lock does that is deleted, and then begins at generation 1
	}},

	"raise spares unused blocks": {nil, opRaise, nil, func(was, next *driver.Block, _ time.Time) {
		if was.Version == 0 {
			*next = *was
		}
	}},
	"raise keeps the nonces": {nil, opRaise, nil, func(was, next *driver.Block, _ time.Time) { next.Nonce = was.Nonce }},
	"raise leaves a nonce":   {nil, opRaise, nil, func(_, next *driver.Block, _ time.Time) { next.Nonce = lease.NewNonce() }},
	"raise lowers":           {nil, opRaise, nil, func(_, next *driver.Block, until time.Time) { next.End = until.UTC().Truncate(time.Second) }},

	"renewal idempotent by its nonce": {},
	"keeps a replaced nonce":          {},
	"loses every seventh write":       {checks: []string{"linearizable"}},
	"returns stale reads":             {checks: []string{"linearizable"}},
	"acquires are not atomic":         {checks: []string{"every block at once", "linearizable"}},
	"renewals are not atomic":         {checks: []string{"linearizable"}},
	"finds none while others acquire": {checks: []string{"every block at once"}},
	"ignores the context":             {checks: []string{"cancelled context"}},
	"writes what it refuses":          {},
	"lists every block":               {},
	"accepts any node":                {},
	"creates again":                   {checks: []string{"create"}},
	"creates beside another":          {checks: []string{"create"}},
	"forgets the node range":          {},
	"is created by any call":          {checks: []string{"no store"}},
	"forgets secrets":                 {checks: []string{"secrets"}},
	"raises again":                    {checks: []string{"raise again"}},
	"waits when it is closed":         {checks: []string{"close"}},
	"ignores the longest TTL":         {},

	"grants what another store may have granted": {checks: []string{"create"}},
}

func anyVersion(b *driver.Block, in *input) {
	if b.Nonce == in.grant.Nonce {
		in.grant.Version = b.Version
	}
}

func anyNonce(b *driver.Block, in *input) {
	if b.Nonce != "" && in.grant.Nonce != "" {
		in.grant.Nonce = b.Nonce
	}
}

// rule returns what the store makes of a block.
func (w *wrong) rule(was driver.Block, in input) (next driver.Block, err error) {
	b, f := was, flaws[w.flaw]
	if f.op == in.op && f.before != nil {
		f.before(&b, &in)
	}
	switch in.op {
	case opAcquire:
		next, err = b.Acquire(w.shorten(in.request))
	case opRenew:
		next, err = b.Renew(in.grant, w.shorten(in.request))
	case opRelease:
		next, err = b.Release(in.grant, in.request.Nonce, in.unused)
	case opRaise:
		next = b.Raise(in.unused)
	}
	if err == nil && f.op == in.op && f.after != nil {
		f.after(&was, &next, in.unused)
	}
	return next, err
}

func (w *wrong) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		if w.flaw == "writes what it refuses" {
			w.blocks[0].Version++
		}
		return lease.Grant{}, err
	}
	return w.change(ctx, "acquires are not atomic", func(blocks []driver.Block) (driver.Block, error) {
		for _, b := range blocks {
			if b.Nonce == r.Nonce {
				return b, nil
			}
		}
		if node, ok := w.first[r.Nonce]; ok && w.flaw == "keeps a replaced nonce" {
			return blocks[(node-w.about.First)/w.about.BlockSize], nil
		}
		for _, b := range blocks {
			if next, err := w.rule(b, input{op: opAcquire, request: r}); err == nil {
				w.first[r.Nonce] = b.Node
				return next, nil
			}
		}
		return driver.Block{}, lease.ErrNoFreeNode
	})
}

func (w *wrong) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	if err := driver.CheckRequest(r, time.Time{}); err != nil {
		return lease.Grant{}, err
	}
	return w.write(ctx, input{op: opRenew, grant: g, request: r})
}

func (w *wrong) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := w.write(ctx, input{op: opRelease, grant: g, request: lease.Request{Nonce: nonce}, unused: unused})
	return err
}

func (w *wrong) write(ctx context.Context, in input) (lease.Grant, error) {
	return w.change(ctx, "renewals are not atomic", func(blocks []driver.Block) (driver.Block, error) {
		i, err := w.nodes().Index(in.grant.Node)
		if err != nil {
			return driver.Block{}, err
		}
		next, err := w.rule(blocks[i], in)
		if errors.Is(err, lease.ErrLost) && blocks[i].Nonce == in.request.Nonce && w.flaw == "renewal idempotent by its nonce" {
			return blocks[i], nil
		}
		return next, err
	})
}

// read returns the blocks as a call sees them.
func (w *wrong) read(ctx context.Context) ([]driver.Block, error) {
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flaw == "returns stale reads" {
		return slices.Clone(w.old), nil
	}
	return slices.Clone(w.blocks), nil
}

func (w *wrong) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	blocks, err := w.read(ctx)
	if err != nil {
		return lease.Grant{}, err
	}
	i, err := w.nodes().Index(node)
	if err != nil && w.flaw != "accepts any node" {
		return lease.Grant{}, err
	}
	return lease.Grant(blocks[i]), nil
}

func (w *wrong) List(ctx context.Context) (written []lease.Grant, err error) {
	blocks, err := w.read(ctx)
	for _, b := range blocks {
		if b.Version > 0 || w.flaw == "lists every block" {
			written = append(written, lease.Grant(b))
		}
	}
	return written, err
}

func (w *wrong) Raise(ctx context.Context, until time.Time) (time.Time, error) {
	if err := w.begin(ctx); err != nil {
		return until, err
	}
	to, err := w.Memory.Raise(ctx, until)
	if err != nil {
		return until, err
	}
	if w.flaw == "raises again" {
		to = until.Truncate(time.Second)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, b := range w.blocks {
		w.blocks[i], _ = w.rule(b, input{op: opRaise, unused: to})
	}
	copy(w.old, w.blocks)
	return to, nil
}

// change changes a block by a rule. A store with the flaw racy writes what follows from an earlier read.
func (w *wrong) change(ctx context.Context, racy string, f func([]driver.Block) (driver.Block, error)) (lease.Grant, error) {
	if err := w.begin(ctx); err != nil {
		return lease.Grant{}, err
	}
	if racy == "acquires are not atomic" && w.flaw == "finds none while others acquire" {
		if !w.acquiring.CompareAndSwap(false, true) {
			return lease.Grant{}, lease.ErrNoFreeNode
		}
		defer w.acquiring.Store(false)
		time.Sleep(50 * time.Microsecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	read := slices.Clone(w.blocks)
	if w.flaw == racy {
		w.mu.Unlock()
		time.Sleep(50 * time.Microsecond)
		w.mu.Lock()
	}
	b, err := f(read)
	if err != nil {
		return lease.Grant{}, err
	}
	i, err := w.nodes().Index(b.Node)
	if err != nil {
		return lease.Grant{}, err
	}
	if b == w.blocks[i] {
		return lease.Grant(b), nil
	}
	if w.writes++; w.flaw == "loses every seventh write" && w.writes%7 == 0 {
		return lease.Grant(b), nil
	}
	copy(w.old, w.blocks)
	w.blocks[i] = b
	return lease.Grant(b), nil
}

// verdicts records the failures of a check, so that a failure can be the expected result.
type verdicts struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	said   string
}

func (v *verdicts) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = true
	if len(v.said) < 10_000 {
		v.said += fmt.Sprintf(format, args...) + "\n"
	}
}

func (v *verdicts) Failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

func (v *verdicts) Helper()                           {}
func (v *verdicts) Logf(string, ...any)               {}
func (v *verdicts) Error(args ...any)                 { v.Errorf("%s", fmt.Sprint(args...)) }
func (v *verdicts) FailNow()                          { v.Errorf("failed"); runtime.Goexit() }
func (v *verdicts) Fatal(args ...any)                 { v.Error(args...); runtime.Goexit() }
func (v *verdicts) Fatalf(format string, args ...any) { v.Errorf(format, args...); runtime.Goexit() }

func judged(tb testing.TB, run func(tb testing.TB)) *verdicts {
	v := &verdicts{TB: tb}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(v)
	}()
	<-done
	return v
}

// harness is stores of which every client is the same one.
func harness(empty func() driver.Store) Harness {
	return Harness{New: func(testing.TB) Storage {
		s := empty()
		return Storage{Open: func() (driver.Store, error) { return s, nil }}
	}}
}

func TestTheSuiteCatchesWrongStores(t *testing.T) {
	for flaw, f := range flaws {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			if f.checks == nil {
				f.checks = []string{"calls"}
			}
			catches(t, harness(func() driver.Store { return newWrong(flaw) }), f.checks...)
		})
	}
	catches(t, harness(func() driver.Store { return newWrong("") }))
}

// catches checks that these checks fail, and that every check succeeds if there are none.
func catches(t *testing.T, h Harness, names ...string) {
	saw := map[string]string{}
	for _, c := range checks {
		if v := judged(t, func(tb testing.TB) { c.run(tb, h) }); v.Failed() {
			saw[c.name] = v.said
		}
	}
	if len(names) == 0 && len(saw) > 0 {
		t.Errorf("a store without a flaw fails: %v", saw)
	}
	for _, name := range names {
		if _, ok := saw[name]; !ok {
			t.Errorf("%q does not detect it; detected by %v", name, saw)
		}
	}
}

// lateChecker is a Memory that compares the clocks of Acquires only.
type lateChecker struct{ *driver.Memory }

func (s lateChecker) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	if ahead := time.Until(r.Now); ahead > 0 {
		r.Now, r.TTL = time.Now(), min(r.TTL+ahead, lease.MaxTTL)
	}
	return s.Memory.Renew(ctx, g, r)
}

// Clocks that are not used, and clients that do not share a storage.
func TestTheSuiteCatchesWrongStorages(t *testing.T) {
	idle := harness(func() driver.Store { return new(driver.Memory) })
	late := harness(func() driver.Store { return lateChecker{&driver.Memory{Clock: time.Now}} })
	idle.KnowsTime, late.KnowsTime = true, true
	catches(t, idle, "calls")
	catches(t, late, "calls")
	catches(t, Harness{New: func(testing.TB) Storage {
		return Storage{Open: func() (driver.Store, error) { return new(driver.Memory), nil }}
	}}, "create", "every block at once", "linearizable")
}

// An unanswered call may or may not have been executed; nothing else is possible.
func TestUnansweredCalls(t *testing.T) {
	granted := unwritten(few)
	granted[0], _ = granted[0].Acquire(request(start(), time.Minute))
	for _, in := range []input{
		{op: opAcquire, request: request(start(), time.Hour)},
		{op: opRenew, grant: lease.Grant(granted[0]), request: request(start(), time.Hour)},
		{op: opRelease, grant: lease.Grant(granted[0]), request: request(start(), 0), unused: start()},
	} {
		seen := map[state]bool{}
		for _, s := range step(granted, few, in, output{verdict: unanswered}) {
			seen[s.(state)] = true
		}
		want := 2
		if in.op == opAcquire {
			want = driver.RangeOf(few).Blocks() // each free block, or none
		}
		for s := range seen {
			for i, b := range s {
				if b != granted[i] && (b.Nonce != in.request.Nonce || b.Version != granted[i].Version+1) {
					t.Errorf("%s: block %d may become %+v", in.op, i, b)
				}
			}
		}
		if !seen[granted] || len(seen) != want {
			t.Errorf("%s: %d states, with the old one: %t; want %d", in.op, len(seen), seen[granted], want)
		}
	}
}
