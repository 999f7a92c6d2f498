package pages_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
	"github.com/traceflake/traceflake/lease/driver/pages/pagestest"
	"github.com/traceflake/traceflake/randflake"
)

var simSeeds = flag.Int("seeds", 150, "how many seeds the simulation runs")

// A world is clients of one storage, whose requests reach the server one at a
// time, in any order, and fail in every way: lost, late, repeated, without an
// answer, and of a client that is gone. The clients run the production code. A
// seed decides what becomes of requests; the order in which pages are searched
// is up to the code.
type world struct {
	rng    *rand.Rand
	server *pagestest.Server
	nodes  driver.NodeRange
	pages  uint32 // blocks a page

	mu      sync.Mutex // guards all that follows
	pending []*pending
	late    []*pending // applied when nobody waits any more

	// What was seen.
	stored   map[uint32]driver.Block
	written  map[string]bool   // nonces that some block had
	versions map[string]bool   // that any object had
	refused  map[string]string // nonces of writes that were refused, by definite errors
	acks     []lease.Grant
	acquires map[*acquiring]bool
	log      []string
	failed   string
	counts   map[string]int

	bare bool // lists have no data
}

// acquiring is an Acquire that is under way.
type acquiring struct {
	now     time.Time
	wasFull bool
}

// pending is a request on its way, which may be applied more than once.
type pending struct {
	write bool
	apply func() answer
	done  chan answer
	from  *simClient
}

func (w *world) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, args...)
		w.logf("FAILED: %s", w.failed)
	}
}

// simClient is one client's way to the server.
type simClient struct {
	w    *world
	id   int
	gone context.CancelFunc
}

// send sends a request, which the world applies when it likes.
func (c *simClient) send(m *message, do func() answer) answer {
	ctx := m.ctx
	m.ctx = context.Background() // the server does not know that a client is gone
	p := &pending{write: m.op == "write", done: make(chan answer, 1), from: c, apply: func() answer {
		a := do()
		if m.op == "write" && a.err == nil {
			c.w.wrote(m, a.object)
		}
		if c.w.bare {
			a.listed = bare(a.listed)
		}
		return a
	}}
	c.w.do(func() { c.w.pending = append(c.w.pending, p) })
	select {
	case a := <-p.done:
		return a
	case <-ctx.Done():
		return answer{err: ctx.Err()}
	}
}

// wrote judges a write that the server made.
func (w *world) wrote(m *message, o pages.Object) {
	if w.versions[o.Version] {
		w.fail("%s has version %s again", m.name, o.Version)
	}
	w.versions[o.Version] = true
	w.judge(m.name, m.data)
}

// judge compares each block of a page that was written with what it was, by the
// rule of granting.
func (w *world) judge(name string, data []byte) {
	if name == "config" {
		return
	}
	p, err := pages.Parse(data)
	if err != nil {
		w.fail("%s: %v", name, err)
		return
	}
	changed := 0
	for _, b := range p.Blocks {
		now := driver.Block{Node: b.Node, Nodes: w.nodes.BlockSize, Start: b.From, GrantedUntil: b.Until, Nonce: b.Nonce, Version: b.Version, Owner: b.Owner}
		was, ok := w.stored[b.Node]
		if !ok {
			was = driver.Block{Node: b.Node, Nodes: w.nodes.BlockSize}
		}
		if now == was {
			continue
		}
		changed++
		w.logf("%s: node %d: version %d, %s to %s, %.6s", name, b.Node, b.Version, clock(b.From), clock(b.Until), b.Nonce)
		switch {
		case now.Version != was.Version+1:
			w.fail("node %d went from version %d to %d", b.Node, was.Version, now.Version)
		case !now.Start.Equal(was.Start) && now.Start.Before(was.GrantedUntil):
			w.fail("node %d was granted from %s, and before until %s", b.Node, clock(now.Start), clock(was.GrantedUntil))
		}
		w.stored[b.Node] = now
		if b.Nonce != "" {
			w.written[b.Nonce] = true
		}
	}
	for node := range w.stored {
		if i, err := w.nodes.Index(node); err == nil && fmt.Sprintf("page-%04d", i/int(w.pages)) == name &&
			!slices.ContainsFunc(p.Blocks, func(b pages.Block) bool { return b.Node == node }) {
			w.fail("node %d is gone", node)
		}
	}
	for a := range w.acquires {
		a.wasFull = a.wasFull || w.full(a.now)
	}
	w.counts["blocks written"] += changed
}

func (w *world) full(now time.Time) bool {
	for i := range w.nodes.Blocks() {
		if b := w.stored[w.nodes.Block(i).Node]; b.Free(now) {
			return false
		}
	}
	return true
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

// deliver decides what becomes of one request.
func (w *world) deliver() {
	w.mu.Lock()
	if len(w.pending) == 0 {
		w.mu.Unlock()
		time.Sleep(time.Duration(1+w.rng.IntN(50)) * time.Millisecond)
		return
	}
	defer w.mu.Unlock()
	i := w.rng.IntN(len(w.pending))
	m := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	w.counts["requests"]++
	fate := w.rng.IntN(120)
	if !m.write && fate < 20 {
		fate += 100 // reads are not late or repeated
	}
	switch {
	case fate < 4:
		w.counts["late"]++
		w.late = append(w.late, m)
		m.done <- answer{err: errLost}
	case fate < 12:
		w.counts["repeated, second answer"]++
		_ = m.apply()
		m.done <- m.apply()
	case fate < 16:
		w.counts["repeated late"]++
		m.done <- m.apply()
		w.late = append(w.late, m)
	case fate < 100:
		m.done <- m.apply()
	case fate < 108:
		w.counts["lost"]++
		m.done <- answer{err: errLost}
	case fate < 116:
		w.counts["without an answer"]++
		_ = m.apply()
		m.done <- answer{err: errLost}
	default:
		w.counts["crash"]++
		if w.rng.IntN(2) == 0 {
			_ = m.apply()
		} else if m.write {
			w.late = append(w.late, m)
		}
		w.logf("client %d is gone", m.from.id)
		m.from.gone()
	}
	if len(w.late) > 0 && w.rng.IntN(12) == 0 {
		i := w.rng.IntN(len(w.late))
		_ = w.late[i].apply()
		w.late = slices.Delete(w.late, i, i+1)
	}
}

// live is the life of a client: it acquires, renews and releases, asks again
// after it had no answer, and forgets what it had when it is gone.
func (w *world) live(ctx context.Context, c *simClient, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(c.id)))
	s := open(wire{w.server, c.send}, w.pages, w.nodes)
	var held []lease.Grant
	ask := ""
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		now := time.Now().Add(time.Duration(rng.IntN(4)-2) * time.Second)
		kind := rng.IntN(20)
		switch {
		case kind == 0 && rng.IntN(6) == 0:
			err := s.Raise(call, now.Add(time.Duration(rng.IntN(10))*time.Second))
			w.do(func() { w.heard("", lease.Grant{}, err) })
		case kind < 2:
			_, err := s.List(call)
			w.do(func() { w.heard("", lease.Grant{}, err) })
		case len(held) == 0 || ask != "" || kind < 8:
			if ask == "" {
				ask = lease.NewNonce()
			}
			r := lease.Request{Nonce: ask, Now: now, TTL: time.Duration(1+rng.IntN(30)) * time.Second, Owner: "a"}
			a := &acquiring{now: now}
			w.do(func() {
				w.counts["acquires"]++
				a.wasFull = w.full(now)
				w.acquires[a] = true
			})
			g, err := s.Acquire(call, r)
			w.do(func() {
				delete(w.acquires, a)
				switch {
				case err == nil && !w.written[r.Nonce]:
					w.fail("%.6s was granted node %d, which was not written", r.Nonce, g.Node)
				case err == nil:
					w.acks = append(w.acks, g)
				case !errors.Is(err, lease.ErrNoFreeNode):
					w.unexpected(err)
				case !a.wasFull:
					w.fail("at %s there was a free block all the time: %v", clock(now), err)
				default:
					w.counts["no free block"]++
				}
			})
			if err == nil {
				ask = ""
				held = append(held, g)
			}
		case kind < 17:
			i := rng.IntN(len(held))
			next := lease.NewNonce()
			g, err := s.Renew(call, held[i], renewal(next, now.Add(time.Duration(rng.IntN(30))*time.Second)))
			w.do(func() { w.heard(next, g, err) })
			switch {
			case err == nil:
				held[i] = g
			case errors.Is(err, lease.ErrLost):
				held = slices.Delete(held, i, i+1)
			default:
				if stored, err := s.Get(call, held[i].Node); err == nil && stored.Nonce == next {
					held[i] = stored
				}
			}
		default:
			i := rng.IntN(len(held))
			next := lease.NewNonce()
			err := s.Release(call, held[i], next, now)
			w.do(func() { w.heard(next, lease.Grant{}, err) })
			held = slices.Delete(held, i, i+1)
		}
		cancel()
	}
}

func (w *world) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// heard keeps what a call was answered that writes with this nonce, if it writes one.
func (w *world) heard(next string, g lease.Grant, err error) {
	switch {
	case errors.Is(err, lease.ErrLost):
		w.refused[next] = err.Error()
	case err != nil:
		w.unexpected(err)
	case g.Nonce != "":
		w.acks = append(w.acks, g)
	}
}

// unexpected fails the test if an error is neither the network's nor one of the
// two that a repeated write makes.
func (w *world) unexpected(err error) {
	for _, ok := range []error{errLost, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, ok) {
			return
		}
	}
	if strings.Contains(err.Error(), "may have been made") {
		w.counts["own nonce found"]++
		return
	}
	w.fail("unexpected error: %v", err)
}

// simulate runs one history, in a bubble of synctest.
func simulate(t *testing.T, seed uint64, flaw func(*world)) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), server: &pagestest.Server{Now: time.Now},
		stored: map[uint32]driver.Block{}, written: map[string]bool{}, versions: map[string]bool{},
		refused: map[string]string{}, acquires: map[*acquiring]bool{}, counts: map[string]int{},
	}
	w.pages, w.bare = uint32(1+w.rng.IntN(3)), w.rng.IntN(2) == 0
	if w.rng.IntN(3) == 0 {
		w.server.Now = nil // so that pages are remembered
	}
	size := uint32(randflake.MaxNode+1) / (4 << w.rng.IntN(2))
	w.nodes = driver.NodeRange{First: 0, Nodes: randflake.MaxNode + 1, BlockSize: size}
	if flaw != nil {
		flaw(w)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		start := func(id int) {
			c := &simClient{w: w, id: id}
			var life context.Context
			life, c.gone = context.WithCancel(ctx)
			all.Go(func() { w.live(life, c, seed) })
		}
		clients := 3 + w.rng.IntN(4)
		for id := range clients {
			start(id)
		}
		for gone := 0; ; {
			synctest.Wait()
			var over bool
			var crashes int
			w.do(func() {
				over, crashes = w.failed != "" || w.counts["requests"] == 1000, w.counts["crash"]
			})
			if over {
				break
			}
			for ; gone < crashes; gone++ { // another one in its place
				start(clients + gone)
			}
			w.deliver()
		}
		stop()
		all.Wait()
		for _, m := range w.late {
			_ = m.apply()
		}
	})
	for nonce, why := range w.refused {
		if w.written[nonce] {
			w.fail("%.6s was written, and the call answered: %s", nonce, why)
		}
	}
	for _, g := range w.acks {
		b := w.stored[g.Node]
		if b.Version < g.Version || b.Version == g.Version && b.Grant() != g {
			w.fail("node %d has %+v, and %+v was acknowledged", g.Node, b, g)
		}
	}
	return w
}

func TestSimulation(t *testing.T) {
	total := map[string]int{}
	for seed := range uint64(*simSeeds) {
		w := simulate(t, seed, nil)
		for what, n := range w.counts {
			total[what] += n
		}
		if w.failed != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.failed, strings.Join(w.log[max(0, len(w.log)-40):], "\n"))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%6d %s", total[what], what)
	}
	for _, what := range []string{"lost", "without an answer", "late", "repeated, second answer", "repeated late", "crash", "no free block", "own nonce found"} {
		if total[what] == 0 {
			t.Errorf("there was no request %q", what)
		}
	}
}

// A server that ignores versions is found by some seed.
func TestSimulationCatches(t *testing.T) {
	for seed := range uint64(*simSeeds) {
		w := simulate(t, seed, func(w *world) { w.server.Ignores = func(string) bool { return true } })
		if w.failed != "" {
			t.Logf("seed %d: %s", seed, w.failed)
			return
		}
	}
	t.Errorf("%d seeds did not catch it", *simSeeds)
}
