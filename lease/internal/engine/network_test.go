package engine_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/internal/network"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/randflake"
)

var seeds = flag.Int("seeds", 400, "how many runs over a bad network to check")

// distant is a server on the other side of a bad network. A write may arrive long after its client
// gave up.
type distant struct {
	driver.Objects
	network network.Bad
}

// send takes the time of a request.
func (d *distant) send(request, again func()) error {
	time.Sleep(rand.N(3 * time.Millisecond))
	return d.network.Send(func(bool) error { request(); return nil }, again)
}

func (d *distant) Read(ctx context.Context, name string) (o driver.Object, err error) {
	lost := d.send(func() { o, err = d.Objects.Read(ctx, name) }, func() {})
	return o, cmp.Or(lost, err)
}

func (d *distant) Write(_ context.Context, name string, data []byte,
	version string) (o driver.Object, err error) {
	write := func() (driver.Object, error) {
		return d.Objects.Write(context.Background(), name, data, version)
	}
	again := func() { _, _ = write() }
	if rand.IntN(20) == 0 { // repeated before it is answered, and others write in between
		again()
		time.Sleep(rand.N(3 * time.Millisecond))
	}
	lost := d.send(func() { o, err = write() }, again)
	return o, cmp.Or(lost, err)
}

// answered is a call and its answer.
type answered struct {
	call
	got          lease.Grant
	err          error
	began, ended time.Time
}

// The answers that clients get over a bad network follow from the rule, if unanswered calls were
// carried out or not. Servers have clocks or not.
func TestPagesOverABadNetwork(t *testing.T) {
	calls, unanswered := 0, 0
	for seed := range uint64(*seeds) {
		answers, stored := overABadNetwork(t, seed, false)
		for _, a := range answers {
			if calls++; a.err != nil && !definite(a.err) {
				unanswered++
			}
		}
		if err := judgeGrants(answers, stored); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if unanswered == 0 {
		t.Error("every call was answered")
	}
	t.Logf("%d calls, %d without an answer", calls, unanswered)
}

func TestPagesOfAServerThatIgnoresVersions(t *testing.T) {
	for seed := range uint64(50) {
		if err := judgeGrants(overABadNetwork(t, seed, true)); err != nil {
			t.Log(err)
			return
		}
	}
	t.Error("not seen")
}

// four is all nodes in four blocks, which are soon used up.
var four = describe(
	lease.Description{Nodes: randflake.MaxNode + 1, BlockSize: (randflake.MaxNode + 1) / 4})

// overABadNetwork returns the calls of four clients, and the store's blocks at the end.
func overABadNetwork(t *testing.T, seed uint64,
	ignoresVersions bool) (all []answered, stored []lease.Grant) {
	t.Helper()
	server := new(counted)
	if ignoresVersions {
		server.Accepts = func(string, bool) bool { return true }
	}
	if seed%4 > 0 {
		server.Clock = time.Now
	}
	perPage := uint32(1 + seed%3)
	far := &distant{Objects: server, network: network.Bad{Every: 20}}
	synctest.Test(t, func(t *testing.T) { // so that every goroutine has its time
		time.Sleep(time.Until(time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)))
		if err := client(server, perPage).Create(t.Context(), four); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var seen sync.Map
		var clients sync.WaitGroup
		halves := 0 // half seconds since t0; shared, so that some clients lag
		for i := range uint64(4) {
			s := client(far, perPage)
			l := &loader{Rand: rand.New(rand.NewPCG(seed, i)), about: four, seen: &seen}
			clients.Go(func() {
				for range 20 {
					mu.Lock()
					halves += l.IntN(6)
					now := t0.Add(time.Duration(halves) * time.Second / 2)
					mu.Unlock()
					a := answered{call: l.call(now), began: time.Now()}
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					a.got, a.err = a.on(ctx, s)
					cancel()
					a.ended = time.Now()
					l.answered(a.got, a.err)
					mu.Lock()
					all = append(all, a)
					mu.Unlock()
					time.Sleep(time.Duration(l.Int64N(int64(time.Second / 2))))
				}
			})
		}
		clients.Wait()
		time.Sleep(time.Minute) // for the late messages
		var err error
		if stored, err = client(server, perPage).List(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return all, stored
}

// state names a state of a block.
type state struct {
	node    uint32
	version uint64
}

// judgeGrants returns the first mistake in the answers of calls, of a store that has some blocks at
// last. Each state of a block must be known as one grant, the rule must lead from the state before
// it, if that is known, and no answer may have an older state than one that was known before.
func judgeGrants(answers []answered, stored []lease.Grant) error {
	known, last := map[state]lease.Grant{}, map[uint32]lease.Grant{}
	for i := range four.Blocks() {
		b := four.Block(i)
		known[state{b.Node, 0}], last[b.Node] = b, b
	}
	learn := func(g lease.Grant) error {
		at := state{g.Node, g.Version}
		if other, ok := known[at]; ok && other != g || g.Version > last[g.Node].Version {
			return fmt.Errorf("a block was %+v and %+v, and is %+v", g, other, last[g.Node])
		}
		known[at] = g
		return nil
	}
	for _, b := range stored {
		last[b.Node] = b
		if err := learn(b); err != nil {
			return err
		}
	}
	slices.SortFunc(answers, func(a, b answered) int { return a.ended.Compare(b.ended) })
	for i, a := range answers {
		if a.err == nil && a.op == "release" {
			b, err := engine.ReleaseBlock(a.grant, a.grant, a.request.Nonce, a.until)
			if err != nil {
				return fmt.Errorf("%+v succeeded, want %w", a, err)
			}
			answers[i].got = b
		}
		if a.err == nil {
			if err := learn(answers[i].got); err != nil {
				return fmt.Errorf("%+v: %w", a, err)
			}
		}
	}
	for i, a := range answers {
		if err := judgeAnswer(a, known, last); err != nil {
			return fmt.Errorf("%+v: %w", a, err)
		}
		for _, earlier := range answers[:i] {
			if a.err == nil && earlier.err == nil && earlier.ended.Before(a.began) &&
				earlier.got.Node == a.got.Node && earlier.got.Version > a.got.Version {
				return fmt.Errorf("%+v is older than the answer of %+v", a, earlier)
			}
		}
	}
	return nil
}

// judgeAnswer returns what is wrong with an answer.
func judgeAnswer(a answered, known map[state]lease.Grant, last map[uint32]lease.Grant) error {
	if (a.op == "renew" || a.op == "release") && errors.Is(a.err, lease.ErrLost) &&
		last[a.grant.Node] == a.grant {
		return errors.New("the grant is called lost, and is still the block's")
	}
	before, ok := known[state{a.got.Node, a.got.Version - 1}]
	if a.err == nil && a.op != "get" && ok {
		return judgeGrant(a, before)
	}
	return nil
}

// judgeGrant returns what is wrong with a grant that followed another one of its block.
func judgeGrant(a answered, before lease.Grant) error {
	b, err := before, error(nil)
	switch r := engine.Shorten(a.request, four); a.op {
	case "acquire":
		b, err = engine.AcquireBlock(b, r)
	case "renew":
		b, err = engine.RenewBlock(b, a.grant, r)
	case "release":
		b, err = engine.ReleaseBlock(b, a.grant, r.Nonce, a.until)
	}
	if err != nil {
		return fmt.Errorf("from %+v, against the rule: %w", before, err)
	}
	if b != a.got {
		return fmt.Errorf("from %+v the rule leads to %+v", before, b)
	}
	return nil
}
