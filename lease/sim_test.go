package lease_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/lease"
)

var (
	simSeeds = flag.Uint64("seeds", 100, "how many seeds to simulate")
	simFirst = flag.Uint64("first", 1, "the first of these seeds")
	simSeed  = flag.Uint64("seed", 0, "replay only this seed, with its history")
)

// simLength is how long faults occur.
const simLength = 60 * time.Second

// newWorld decides everything that depends on the seed.
func newWorld(seed uint64, v variant) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x7ace)), variant: v,
		histories: map[string]operator{}}
	w.ledger = newLedger(w)
	w.vmclock = w.rng.IntN(3) == 0
	w.mixed = !w.vmclock || w.rng.IntN(2) == 0
	w.operators = pick(w, 0, 0, 1)
	w.twoStores = w.rng.IntN(2) == 0
	if v.shows != nil {
		v.shows(w)
	}
	w.pauses = pick(w, 0.002, 0.01, 0.03)
	w.ttl = w.between(lease.MinTTL, 15*time.Second)

	hosts, processes := 2+w.rng.IntN(3), 3+w.rng.IntN(3)
	size := pick[uint32](w, 1, 1, 2, 8)
	w.nodes = lease.Description{First: size * w.rng.Uint32N(100),
		Nodes: size * uint32(processes+1+maxCopies+w.rng.IntN(4)), BlockSize: size}

	// In half of the worlds there are two stores: under one secret, each with its own nodes, or
	// under two secrets with the same nodes.
	first := w.newSecret()
	w.servers = append(w.servers, w.newServer(first, w.nodes))
	if w.twoStores {
		with, nodes := first, w.nodes
		switch {
		case w.wrong("two stores with one secret"):
		case w.rng.IntN(2) == 0 || w.wrong("secrets are not compared"):
			with = w.newSecret()
		default:
			nodes.First += nodes.Nodes
		}
		w.servers = append(w.servers, w.newServer(with, nodes))
	}
	for i := range hosts {
		skew := w.between(-3*time.Second, 3*time.Second)
		if w.rng.IntN(4) == 0 {
			skew = pick(w, w.between(-time.Minute, 30*time.Second), -w.between(0, 26*time.Hour),
				w.between(0, 26*time.Hour),
				w.between(50*time.Second, time.Minute))
		}
		h := &host{id: i, life: firstLife, asleep: -w.between(0, time.Hour),
			server: w.servers[i%len(w.servers)], kernel: w.newKernel()}
		h.set(0, skew, w.slew())
		w.hosts = append(w.hosts, h)
	}
	w.processesAtFirst = processes
	for i := range processes {
		w.start(w.hosts[i%hosts])
	}
	w.wakeAt(w.spawn(nil, w.chaos), w.now)
	return w
}

// Faults that a variant needs often.
const (
	clockStep     = 9
	goldenImage   = 25
	returnByACopy = 28
	otherSecret   = 29
)

// chaos causes one fault after another.
func (w *world) chaos() {
	for {
		if w.sleep(w.between(0, 2*time.Second)); w.calm {
			return
		}
		h := pick(w, w.hosts...)
		s := pick(w, w.servers...)
		live := slices.DeleteFunc(slices.Clone(w.processes),
			func(p *process) bool { return !p.runs() })
		if len(live) == 0 {
			continue // a new process is about to start
		}
		p := pick(w, live...)
		fault := w.rng.IntN(30)
		if w.often > 0 && w.rng.IntN(3) == 0 {
			fault = w.often
		}
		switch fault {
		case 0, 1, 2, 3:
			p.kill()
			w.after(pick(w, 0, 0, w.between(0, time.Second), w.between(0, w.ttl)), func() {
				again := ""
				if last := len(p.asked) - 1; last >= 0 &&
					w.wrong("resuming a grant after a crash") {
					again = p.asked[last]
				}
				if w.room() {
					w.startWith(p.host, nil, again)
				}
			})
		case 4, 5:
			p.close()
			w.start(p.host)
		case 6, 7, 8:
			d := w.between(0, 2*w.ttl)
			h.frozen = max(h.frozen, w.now+d)
			if w.rng.IntN(2) == 0 {
				h.asleep += d
			}
			w.logf("host %d is suspended for %s", h.id, d)
		case clockStep, 10, 11:
			d := pick(w, w.between(0, time.Second), w.between(0, 5*time.Second),
				w.between(0, 5*time.Minute))
			if w.rng.IntN(2) == 0 {
				d = -d
			}
			if d += h.ahead(w.now); d.Abs() > 30*time.Hour {
				d = 0
			}
			h.set(w.now, d, w.slew())
			w.logf("host %d: clock stepped by %s", h.id, d)
		case 12:
			h.set(w.now, 0, 0)
			w.logf("host %d: clock corrected", h.id)
		case 13, 14, 15:
			h.cut = w.now + w.between(0, 2*w.ttl)
			w.logf("host %d is cut off until %.3fs", h.id, h.cut.Seconds())
		case 16, 17:
			if w.bursts || w.nodes.BlockSize <= 2 && w.rng.IntN(12) == 0 {
				p.exhaust()
			}
		case 18:
			w.failOver(s)
		case 19:
			if s.about.ID != "" && !s.closed && (w.rng.IntN(4) == 0 || w.losses) {
				s.lose()
			}
		case 20, 21:
			w.copySome(p)
		case 22, 23, 24:
			p.armed = true // at its next call to the store
		case goldenImage, 26:
			// A golden image, copied while its first Acquire is pending.
			p.kill()
			w.start(h).armed = true
		case 27:
			switch {
			case w.operators == 0 || s.about.ID == "" || s.closed:
			case w.rng.IntN(2) == 0:
				s.rollOut()
			default:
				s.replace()
			}
		case returnByACopy:
			// A copy uses up its seconds and returns the rest.
			w.copySome(p)
			if !p.dead && (w.bursts || w.nodes.BlockSize == 1) {
				p.exhaust()
				w.after(w.between(0, time.Second), func() {
					if p.runs() {
						p.close()
					}
				})
			}
		case otherSecret:
			// A process gets the secret of another store, until that is noticed.
			if other := pick(w, w.servers...); other.secret != h.server.secret && w.room() {
				p := w.startWith(h, other.secret, "")
				w.logf("process %d has another store's secret", p.id)
				w.after(w.between(0, 4*w.ttl), p.kill)
			}
		}
	}
}

// slew returns how fast a wall clock is corrected, or wrong by itself.
func (w *world) slew() float64 {
	rate := pick(w, 0, 0, 500e-6, 0.02, 0.2)
	return pick(w, rate, -rate)
}

// maxCopies is how many processes more than at the start may run.
const maxCopies = 4

// room reports whether another process may start.
func (w *world) room() bool {
	live := 0
	for _, p := range w.processes {
		if !p.dead {
			live++
		}
	}
	return live < w.processesAtFirst+maxCopies
}

// copySome copies a process once or twice, like a machine that is restored from a snapshot: at once
// or later, with clocks that continued or stood still.
func (w *world) copySome(p *process) {
	w.lives++
	life := pick(w, firstLife+w.lives, firstLife-w.lives)
	for range 1 + w.rng.IntN(2) {
		if p.dead || w.calm || !w.room() {
			return
		}
		h := *p.host
		h.id = len(w.hosts)
		later := pick(w, 0, w.between(0, time.Second), w.between(0, w.ttl))
		if later > 0 {
			h.frozen = max(h.frozen, w.now+later)
			if w.rng.IntN(2) == 0 { // both clocks stood still
				h.asleep += later
				h.set(w.now, h.ahead(w.now)-later, h.slew)
			} else if w.rng.IntN(2) == 0 { // the wall clock is corrected
				h.asleep += later
			}
		}
		if w.vmclock { // it may fall, and be the same in all copies
			h.life = life
			h.kernel.reseeds = w.now + later + 1 + w.between(0, slowestReseed)
		}
		w.hosts = append(w.hosts, &h)
		p.copy(&h)
	}
	if w.rng.IntN(3) == 0 {
		p.kill()
	}
}

// failOver copies a store and later, once or twice, replaces the store by the copy. Operators must
// then replace its secret.
func (w *world) failOver(s *server) {
	if s.about.ID == "" || s.closed {
		return
	}
	load, forgets := s.backup(), w.wrong("a store that forgets acknowledged grants")
	if !forgets && w.rng.IntN(4) >= w.operators*w.operators {
		return
	}
	restore := func() {
		if w.calm || s.closed || s.about.ID == "" {
			return
		}
		load(s)
		s.wrongClock()
		w.logf("a store is restored from a backup")
		switch {
		case forgets:
			s.clock = 0
		case w.wrong("a process reaches a restored store"):
			s.clock = 0
			w.after(w.between(0, w.ttl), func() {
				if !s.closed && s.about.ID != "" {
					s.replace()
				}
			})
		default:
			s.replace()
		}
	}
	w.after(w.between(0, w.ttl), restore)
	if w.rng.IntN(2) == 0 {
		w.after(w.between(w.ttl, 4*w.ttl), restore)
	}
}

// heal ends all faults and waits until every earlier grant is over.
func (w *world) heal() {
	w.calm = true
	for _, h := range w.hosts {
		h.set(w.now, 0, 0)
		h.server.clock = 0
	}
	for _, p := range w.processes {
		p.server.clock = 0
	}
	w.logf("no more faults begin")
	w.run(w.now + 3*w.ttl) // operators and restarts end
	w.run(w.now + 2*w.ttl + time.Minute + 20*time.Second)
	if w.failed != "" {
		return
	}
	for _, p := range w.processes {
		if p.with == nil && !p.server.spent && p.runs() && p.lastID < w.now-5*time.Second {
			w.fail("stuck", "process %d has made no ID since %.3fs: %v", p.id, p.lastID.Seconds(),
				p.keeper.Failure())
		}
	}
}

// simulate runs one history and returns it.
func simulate(seed uint64, v variant) *world {
	w := newWorld(seed, v)
	defer w.end()
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, r))
		}
	}()
	w.run(simLength)
	if w.failed == "" && v.name == "" {
		w.heal()
	}
	return w
}

// raced reports whether the race detector is on.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestSimulation runs the production code under many seeds. With -seed, one seed is replayed and
// its whole history is logged.
func TestSimulation(t *testing.T) {
	first, last := *simFirst, *simFirst+*simSeeds-1
	switch {
	case *simSeed != 0:
		first, last = *simSeed, *simSeed
	case raced(), testing.Short():
		last = min(last, first+9)
	}
	var made, fills, lives atomic.Int64
	queue := make(chan uint64)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed := range queue {
				w := simulate(seed, variant{})
				made.Add(int64(w.ledger.made))
				fills.Add(int64(w.ledger.fills))
				lives.Add(int64(len(w.processes)))
				if *simSeed != 0 {
					t.Log(strings.Join(w.log, "\n"))
				}
				if w.failed != "" {
					t.Errorf("seed %d: %s\nreplay: go test ./lease -run '^TestSimulation$' -v "+
						"-seed %d", seed, w.failed, seed)
				}
			}
		})
	}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		queue <- seed
		if seed%500 == 0 { // a long run that is ended shows how far it came
			t.Logf("seed %d begins, %d IDs so far", seed, made.Load())
		}
	}
	close(queue)
	all.Wait()
	seeds := int64(last - first + 1)
	t.Logf("%d seeds, %d processes, %d reservations, %d IDs", seeds, lives.Load(), fills.Load(),
		made.Load())
	if least := 5_000 * seeds; made.Load() < least && !t.Failed() {
		t.Errorf("only %d IDs were generated, want %d", made.Load(), least)
	}
}

// TestSimulationCatches proves that the simulator finds each wrong variant.
func TestSimulationCatches(t *testing.T) {
	if testing.Short() || raced() {
		t.Skip("it tests the simulator, whose coroutines run one at a time")
	}
	for _, v := range wrongVariants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 100; seed++ {
				if w := simulate(seed, v); w.failed != "" {
					t.Logf("caught by seed %d: %s", seed, w.failed)
					return
				}
			}
			t.Error("100 seeds did not catch it")
		})
	}
}

// TestSimulationReplays shows that a seed always results in the same history.
func TestSimulationReplays(t *testing.T) {
	for seed := range uint64(3) {
		a, b := simulate(seed+1, variant{}), simulate(seed+1, variant{})
		if !slices.Equal(a.log, b.log) || a.ledger.made != b.ledger.made {
			t.Errorf("seed %d: %d events and %d IDs, then %d and %d", seed+1, len(a.log),
				a.ledger.made, len(b.log), b.ledger.made)
		}
	}
}
