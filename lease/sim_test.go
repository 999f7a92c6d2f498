package lease_test

import (
	"context"
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
	simSeeds = flag.Uint64("seeds", 100, "how many seeds to simulate; 1 logs the history, too")
	simFirst = flag.Uint64("first", 1, "the first of these seeds")
)

// simLength is how long faults occur.
const simLength = 60 * time.Second

// newWorld decides everything that depends on the seed.
func newWorld(seed uint64, v variant) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x7ace)), variant: v,
		tainted: map[string]bool{}}
	w.ledger = newLedger(w)
	w.vmclock = w.rng.IntN(3) == 0
	w.compares, w.setsBack = w.rng.IntN(3) > 0, w.rng.IntN(4) == 0
	w.moves = w.rng.IntN(4) == 0
	w.faults = w.chaos
	if v.shows != nil {
		v.shows(w)
	}
	w.pauses = pick(w, 0.002, 0.01, 0.03)
	w.ttl = w.between(lease.MinTTL, 15*time.Second)

	hosts, processes := 2+w.rng.IntN(3), 3+w.rng.IntN(3)
	w.most = processes + 4
	size := pick[uint32](w, 1, 1, 2, 8)
	w.create(lease.Description{First: size * w.rng.Uint32N(100),
		Nodes: size * uint32(2*w.most+w.rng.IntN(8)), BlockSize: size})
	for i := range hosts {
		skew := w.between(-3*time.Second, 3*time.Second)
		if w.rng.IntN(4) == 0 {
			skew = pick(w, w.between(-time.Minute, 30*time.Second), -w.between(0, 26*time.Hour),
				w.between(0, 26*time.Hour),
				w.between(50*time.Second, time.Minute))
		}
		w.hosts = append(w.hosts, &host{id: i, skew: skew, asleep: -w.between(0, time.Hour),
			kernel: *rand.NewPCG(seed, uint64(i)), server: w.servers[0]})
	}
	for i := range processes {
		w.start(w.hosts[i%hosts])
	}
	w.wakeAt(w.spawn(nil, w.faults), w.now)
	return w
}

// chaos causes one fault after another.
func (w *world) chaos() {
	for {
		if w.sleep(w.between(0, 2*time.Second)); w.calm {
			return
		}
		h := pick(w, w.hosts...)
		live := slices.DeleteFunc(slices.Clone(w.processes),
			func(p *process) bool { return !p.runs() })
		if len(live) == 0 {
			continue // a new process is about to start
		}
		p := pick(w, live...)
		fault := w.rng.IntN(28)
		if w.images && w.rng.IntN(3) == 0 {
			fault = 0
		}
		if w.moves && w.rng.IntN(4) == 0 {
			fault = 24
		}
		switch fault {
		case 0, 1:
			// A golden image, copied while its first Acquire is pending.
			p.kill()
			w.start(h).armed = true
		case 2, 3, 4, 5:
			p.kill()
			w.after(pick(w, 0, 0, w.between(0, time.Second), w.between(0, w.ttl)), func() {
				if w.room() {
					w.start(p.host)
				}
			})
		case 6, 7:
			p.close()
			w.start(p.host)
		case 8, 9, 10:
			d := w.between(0, 2*w.ttl)
			h.frozen = max(h.frozen, w.now+d)
			if w.rng.IntN(2) == 0 {
				h.asleep += d
			}
			w.logf("host %d is suspended for %s", h.id, d)
		case 11, 12, 13:
			d := pick(w, w.between(0, time.Second), w.between(0, 5*time.Second),
				w.between(0, 5*time.Minute))
			h.skew += pick(w, d, -d, -h.skew) // or it is corrected
			w.logf("host %d: clock stepped to %s", h.id, h.skew)
		case 14, 15, 16:
			h.cut = w.now + w.between(0, 2*w.ttl)
			w.logf("host %d is cut off until %.3fs", h.id, h.cut.Seconds())
		case 17, 18:
			if w.about.BlockSize <= 2 && w.rng.IntN(12) == 0 {
				p.exhaust()
			}
		case 19, 20:
			w.copySome(p)
		case 24, 25:
			w.failOver()
		case 26:
			// to any server, that was failed over from, too
			h.server = pick(w, w.servers...)
			w.logf("host %d reaches server %d", h.id, h.server.id)
		case 27:
			if w.setsBack {
				h.server.setBack()
			} else {
				h.server.changePlace()
			}
		default:
			p.armed = true // at its next call to the store
		}
	}
}

// room reports whether another process may start.
func (w *world) room() bool {
	live := 0
	for _, p := range w.processes {
		if !p.dead {
			live++
		}
	}
	return live < w.most
}

// copySome copies a process once or twice, like a machine that is restored from a snapshot: at once
// or later, with clocks that continued or stood still.
func (w *world) copySome(p *process) {
	machine := w.rng.Uint64() // it may fall, and is the same in all copies
	for range 1 + w.rng.IntN(2) {
		if p.dead || w.calm || !w.room() {
			return
		}
		h := *p.host
		h.id = len(w.hosts)
		later := pick(w, 0, w.between(0, time.Second), w.between(0, w.ttl))
		if later > 0 {
			h.frozen = max(h.frozen, w.now+later)
			switch w.rng.IntN(3) {
			case 0: // both clocks stood still
				h.skew -= later
				fallthrough
			case 1: // the wall clock is corrected
				h.asleep += later
			}
		}
		if w.vmclock {
			h.machine = machine
			h.reseeds = w.now + later + 1 + w.between(0, slowestReseed)
		}
		w.hosts = append(w.hosts, &h)
		p.copy(&h)
	}
	if w.rng.IntN(3) == 0 {
		p.kill()
	}
}

// heal ends all faults and waits until every earlier grant is over and, if necessary, until a
// process may begin a history that has met many.
func (w *world) heal() {
	w.calm = true
	w.last = pick(w, w.servers...)
	for _, h := range w.hosts {
		h.skew = 0
	}
	w.logf("no more faults begin, all reach server %d", w.last.id)
	w.run(w.now + 5*w.ttl + 80*time.Second)
	if slices.ContainsFunc(w.processes, w.stuck) {
		w.run(w.now + 10*time.Minute)
	}
	if w.failed != "" {
		return
	}
	present := must(w.engine(w.last, nil).Describe(context.Background()))
	for _, p := range w.processes {
		if !p.runs() {
			continue
		}
		if w.stuck(p) {
			w.fail("stuck", "process %d has made no ID since %.3fs: %v", p.id, p.lastID.Seconds(),
				p.keeper.Failure())
		}
		// It verifies IDs with the keys of these.
		if known := p.keeper.Histories(); len(known) == 0 || known[0].ID != present.ID {
			w.fail("astray", "process %d has the histories %v, the store %s", p.id, known,
				present.ID)
		}
	}
}

func (w *world) stuck(p *process) bool { return p.runs() && p.lastID < w.now-5*time.Second }

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

// TestSimulation runs the production code under many seeds. With -seeds 1, the whole history of the
// first one is logged.
func TestSimulation(t *testing.T) {
	seeds := *simSeeds
	if raced() || testing.Short() {
		seeds = min(seeds, 10)
	}
	var next, made, lives atomic.Uint64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= seeds || t.Failed() {
					return
				}
				seed := *simFirst + i
				w := simulate(seed, variant{})
				made.Add(uint64(w.ledger.made))
				lives.Add(uint64(len(w.processes)))
				if seeds == 1 {
					t.Log(strings.Join(w.log, "\n"))
				}
				if w.failed != "" {
					t.Errorf("seed %d: %s\nreplay: go test ./lease -run '^TestSimulation$' -v "+
						"-args -seeds 1 -first %d", seed, w.failed, seed)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d seeds, %d processes, %d IDs", seeds, lives.Load(), made.Load())
	if least := 5_000 * seeds; made.Load() < least && !t.Failed() {
		t.Errorf("only %d IDs were generated, want %d", made.Load(), least)
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
