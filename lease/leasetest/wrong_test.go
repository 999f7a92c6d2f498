package leasetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/randflake"
)

func TestMain(m *testing.M) {
	Worker()
	os.Exit(m.Run())
}

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
}

func newWrong(flaw string) *wrong {
	return &wrong{Memory: driver.EmptyMemory(), flaw: flaw, first: map[string]uint32{}}
}

func (w *wrong) Create(ctx context.Context, d lease.Description) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.about.ID != "" && w.flaw == "creates again" {
		w.Memory, w.blocks = driver.EmptyMemory(), nil
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
		d, _ := filled(lease.Description{})
		return w.Create(ctx, d)
	}
	return err
}

// The flaws, and the checks that must detect each of them.
var flaws = map[string][]string{
	"none":                        nil,
	"frees blocks at their start": {"acquire until none is free", "linearizable"},
	"inclusive end":               {"acquire until none is free"},
	"free one second early":       {"acquire until none is free"},
	"grants more than requested":  {"acquire"},
	"rounds the clock up":         {"acquire"},
	"loses every seventh write":   {"linearizable"},
	"renews any version":          {"renew"},
	"renews for any nonce":        {"renew"},
	"renewal shortens":            {"renew"},
	"renewal keeps the version":   {"renew"},
	"renewal needs a live grant":  {"renew"},
	"renewal keeps the nonce":     {"renew"},
	"renewal loses the owner":     {"renew"},

	"renewal writes only if the end grows":          {"renew"},
	"renewal writes the nonce but no unchanged end": {"renew"},
	"renewal idempotent by its nonce":               {"renew"},

	"keeps a replaced nonce":       {"renew"},
	"loses the owner":              {"acquire"},
	"release returns used seconds": {"release"},
	"release keeps the nonce":      {"release"},
	"release rounds down":          {"release"},
	"release empties the nonce":    {"release"},
	"release keeps the owner":      {"release"},
	"releases any version":         {"renew"},
	"releases for any nonce":       {"renew"},
	"release deletes the block":    {"release"},
	"raise spares unused blocks":   {"raise"},
	"raise keeps the nonces":       {"raise"},
	"raise leaves a nonce":         {"raise"},
	"raise lowers":                 {"raise"},
	"returns stale reads":          {"linearizable"},
	"acquires are not atomic":      {"every block at once", "linearizable"},
	"renewals are not atomic":      {"linearizable"},
	"ignores the context":          {"cancelled context"},
	"writes what it refuses":       {"bad requests"},
	"lists every block":            {"acquire", "get"},
	"accepts any node":             {"get"},
	"creates again":                {"create", "create at once"},
	"creates beside another":       {"create", "create at once"},
	"forgets the node range":       {"acquire"},
	"is created by any call":       {"no store"},
	"forgets secrets":              {"secrets"},
	"raises again":                 {"raise again"},
	"waits when it is closed":      {"close"},
	"ignores the longest TTL":      {"longest TTL"},

	"grants what another store may have granted": {"create"},
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
			return blocks[node/w.about.BlockSize], nil
		}
		for _, b := range blocks {
			next, err := b.Acquire(w.shorten(r))
			switch w.flaw {
			case "frees blocks at their start":
				if err != nil && b.Start.Unix() < r.Now.Unix() {
					b.End = time.Time{}
					next, err = b.Acquire(r)
				}
			case "inclusive end":
				if err == nil && b.End.Unix() == r.Now.Unix() {
					err = lease.ErrNoFreeNode
				}
			case "free one second early":
				if err != nil && b.End.Unix() == r.Now.Unix()+1 {
					b.End = time.Time{}
					next, err = b.Acquire(r)
				}
			case "loses the owner":
				next.Owner = ""
			case "grants more than requested":
				next.End = next.End.Add(time.Second)
			case "rounds the clock up":
				if r.Now.Nanosecond() > 0 {
					next.Start = next.Start.Add(time.Second)
				}
			}
			if err == nil {
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
	return w.change(ctx, "renewals are not atomic", func(blocks []driver.Block) (driver.Block, error) {
		i, err := w.nodes().Index(g.Node)
		if err != nil {
			return driver.Block{}, err
		}
		b := blocks[i]
		if w.flaw == "renewal needs a live grant" && r.Now.Add(r.TTL).Sub(b.End) > 5*time.Second {
			return b, lease.ErrLost
		}
		next, err := b.Renew(w.forgive(b, g, "renews"), w.shorten(r))
		if w.flaw == "renewal idempotent by its nonce" && errors.Is(err, lease.ErrLost) && b.Nonce == r.Nonce {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		switch w.flaw {
		case "renewal shortens":
			if end := r.Now.Add(r.TTL); end.Unix() < b.End.Unix() && end.After(b.Start) {
				next.End = time.Unix(end.Unix(), 0).UTC()
			}
		case "renewal keeps the version":
			next.Version = b.Version
		case "renewal keeps the nonce":
			next.Nonce = b.Nonce
		case "renewal loses the owner":
			next.Owner = ""
		case "renewal writes only if the end grows":
			if next.End.Equal(b.End) {
				return b, nil
			}
		case "renewal writes the nonce but no unchanged end":
			if next.End.Equal(b.End) {
				next.Version = b.Version
			}
		}
		return next, nil
	})
}

// forgive makes a grant that of a block, if the store writes for others too.
func (w *wrong) forgive(b driver.Block, g lease.Grant, writes string) lease.Grant {
	switch {
	case w.flaw == writes+" any version" && b.Nonce == g.Nonce:
		g.Version = b.Version
	case w.flaw == writes+" for any nonce" && b.Nonce != "" && g.Nonce != "":
		g.Nonce = b.Nonce
	}
	return g
}

func (w *wrong) Release(ctx context.Context, g lease.Grant, nonce string, unused time.Time) error {
	_, err := w.change(ctx, "renewals are not atomic", func(blocks []driver.Block) (driver.Block, error) {
		i, err := w.nodes().Index(g.Node)
		if err != nil {
			return driver.Block{}, err
		}
		if w.flaw == "release rounds down" {
			unused = unused.Truncate(time.Second)
		}
		next, err := blocks[i].Release(w.forgive(blocks[i], g, "releases"), nonce, unused)
		if err != nil {
			return next, err
		}
		switch w.flaw {
		case "release returns used seconds":
			next.End = blocks[i].Start
		case "release keeps the nonce":
			next.Nonce = g.Nonce
		case "release empties the nonce":
			next.Nonce = ""
		case "release keeps the owner":
			next.Owner = blocks[i].Owner
		case "release deletes the block": // as a lock does that is deleted, and then begins at generation 1
			next = w.nodes().Block(i)
		}
		return next, nil
	})
	return err
}

func (w *wrong) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	if err := w.begin(ctx); err != nil {
		return lease.Grant{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i, err := w.nodes().Index(node)
	if err != nil && w.flaw != "accepts any node" {
		return lease.Grant{}, err
	}
	if w.flaw == "returns stale reads" {
		return lease.Grant(w.old[i]), nil
	}
	return lease.Grant(w.blocks[i]), nil
}

func (w *wrong) List(ctx context.Context) ([]lease.Grant, error) {
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	blocks := w.blocks
	if w.flaw == "returns stale reads" {
		blocks = w.old
	}
	var written []lease.Grant
	for _, b := range blocks {
		if b.Version > 0 || w.flaw == "lists every block" {
			written = append(written, lease.Grant(b))
		}
	}
	return written, nil
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
		next := b.Raise(to)
		switch {
		case w.flaw == "raise spares unused blocks" && b.Version == 0:
			continue
		case w.flaw == "raise keeps the nonces":
			next.Nonce = b.Nonce
		case w.flaw == "raise leaves a nonce":
			next.Nonce = lease.NewNonce()
		case w.flaw == "raise lowers":
			next.End = time.Unix(until.Unix(), 0).UTC()
		}
		w.blocks[i] = next
	}
	copy(w.old, w.blocks)
	return to, nil
}

// change changes a block by a rule. A store with the flaw racy writes what follows from an earlier read.
func (w *wrong) change(ctx context.Context, racy string, f func([]driver.Block) (driver.Block, error)) (lease.Grant, error) {
	if err := w.begin(ctx); err != nil {
		return lease.Grant{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	read := append([]driver.Block(nil), w.blocks...)
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

func judged(tb testing.TB, c check, h Harness) *verdicts {
	v := &verdicts{TB: tb}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(v, h)
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
	for flaw, must := range flaws {
		t.Run(flaw, func(t *testing.T) {
			t.Parallel()
			h := harness(func() driver.Store { return newWrong(flaw) })
			saw := map[string]string{}
			for _, c := range h.checks() {
				if v := judged(t, c, h); v.Failed() {
					saw[c.name] = v.said
				}
			}
			if text := saw["release"]; flaw == "release deletes the block" && !strings.Contains(text, "its versions begin again") {
				t.Errorf("the mistake has no name: %s", text)
			}
			if flaw == "none" && len(saw) > 0 {
				t.Errorf("a store without a flaw fails: %v", saw)
			}
			for _, name := range must {
				if _, ok := saw[name]; !ok {
					t.Errorf("%q does not detect it; detected by %v", name, saw)
				}
			}
		})
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
	own := Harness{New: func(testing.TB) Storage {
		return Storage{Open: func() (driver.Store, error) { return driver.EmptyMemory(), nil }}
	}}
	idle := harness(func() driver.Store { return driver.EmptyMemory() })
	late := harness(func() driver.Store { return lateChecker{driver.EmptyMemory(driver.WithClock(randflake.SystemClock{}))} })
	idle.KnowsTime, late.KnowsTime = true, true
	for _, c := range []struct {
		name string
		h    Harness
		must []string
	}{
		{"a clock that is not used", idle, []string{"clock ahead"}},
		{"a clock that renewals do not use", late, []string{"clock ahead"}},
		{"each client has its own storage", own, []string{"create", "create at once", "every block at once", "linearizable"}},
	} {
		for _, check := range c.h.checks() {
			if slices.Contains(c.must, check.name) && !judged(t, check, c.h).Failed() {
				t.Errorf("%q does not detect: %s", check.name, c.name)
			}
		}
	}
}

// An unanswered call may or may not have been executed; nothing else is possible.
func TestHistoryOfUnansweredCalls(t *testing.T) {
	t0 := start()
	r := request(t0, time.Minute)
	first := lease.Grant{Lease: randflake.Lease{Node: 0, Nodes: few.BlockSize, Start: t0, End: t0.Add(time.Minute)}, Nonce: r.Nonce, Version: 1}
	renewed := func(nonce string, end time.Time) lease.Grant {
		g := first
		g.Nonce, g.End, g.Version = nonce, end, 2
		return g
	}
	longer := renewed(lease.NewNonce(), t0.Add(time.Hour))
	for _, c := range []struct {
		name string
		get  lease.Grant
		ok   bool
	}{
		{"not executed", first, true},
		{"carried out", longer, true},
		{"by half", renewed(longer.Nonce, first.End), false},
		{"to another end", renewed(longer.Nonce, t0.Add(time.Minute+1)), false},
		{"by another nonce", renewed(lease.NewNonce(), longer.End), false},
	} {
		h := NewHistory(few)
		record := func(in input, g lease.Grant, err error) {
			_, _ = h.record(0, in, func() (lease.Grant, error) { return g, err })
		}
		record(input{op: opAcquire, request: r}, first, nil)
		record(input{op: opRenew, grant: first, request: renewal(longer.Nonce, longer.End)}, lease.Grant{}, context.DeadlineExceeded)
		record(input{op: opGet, grant: first}, c.get, nil)
		v := judged(t, check{run: func(tb testing.TB, _ Harness) { h.Check(tb, time.Minute) }}, Harness{})
		if v.Failed() == c.ok {
			t.Errorf("%s: failed is %t", c.name, v.Failed())
		}
		if calls, unknown := h.Len(); calls != 3 || unknown != 1 {
			t.Errorf("%d calls, %d unknown", calls, unknown)
		}
	}
}
