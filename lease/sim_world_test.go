package lease_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"github.com/traceflake/traceflake/lease"
)

// The simulator runs the production Keeper, Generator and engine under one seed, over objects in
// memory and a bad network. Processes are coroutines that run one at a time; they stop at every
// reading of a clock, every request to the server and every sleep, where they may be killed or
// copied. Servers fail over, move, and are set back. Time is virtual. A seed determines all of it.
// Operators are not simulated: the store is created once, and keeps its secret.

var simStart = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// world is what one seed determines.
type world struct {
	rng     *rand.Rand
	variant variant
	now     time.Duration // true time since simStart
	queue   []event       // by time, those of one time in the order in which they were queued
	order   int
	current *task
	tasks   []*task
	ledger  *ledger
	log     []string
	failed  string  // the first violation of the rules
	calm    bool    // no more faults
	pauses  float64 // how likely each pause is

	ttl       time.Duration
	vmclock   bool   // machines report restores
	images    bool   // many golden images
	moves     bool   // many failovers
	compares  bool   // servers compare the place when they write, and not only when they are read
	setsBack  bool   // servers are set back at their place
	faults    func() // what happens to the processes
	hosts     []*host
	servers   []*server
	last      *server // that all hosts reach after the faults
	processes []*process
	most      int // how many may run

	about   lease.Description // of the store, when it was created
	tainted map[string]bool   // the histories to which a server was set back
}

func (w *world) fail(kind, format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf("%9.3fs %s: ", w.now.Seconds(), kind) + fmt.Sprintf(format, args...)
	}
}

func (w *world) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%9.3fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) time() time.Time { return simStart.Add(w.now) }

// chance returns true with probability p, and never when faults have ended.
func (w *world) chance(p float64) bool { return !w.calm && w.rng.Float64() < p }

// between returns a random time from a to b, short times more often.
func (w *world) between(a, b time.Duration) time.Duration {
	f := w.rng.Float64()
	return a + time.Duration(f*f*float64(b-a))
}

func pick[T any](w *world, of ...T) T { return of[w.rng.IntN(len(of))] }

// task is a coroutine.
type task struct {
	process *process      // nil: the world's task
	index   int           // among the process's tasks
	at      time.Duration // when it wakes
	next    func() (time.Duration, bool)
	stop    func()
	yield   func(time.Duration) bool
	wake    int // the event that wakes it; older events are stale
}

// killed unwinds a coroutine that will not run again.
type killed struct{}

func (w *world) spawn(p *process, f func()) *task {
	t := &task{process: p}
	if p != nil {
		t.index = len(p.tasks)
	}
	t.next, t.stop = iter.Pull(func(yield func(time.Duration) bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(killed); !ok {
					panic(fmt.Sprintf("%v\n%s", r, debug.Stack()))
				}
			}
		}()
		t.yield = yield
		f()
	})
	w.tasks = append(w.tasks, t)
	return t
}

// sleep stops the running coroutine for d.
func (w *world) sleep(d time.Duration) {
	if !w.current.yield(d) {
		panic(killed{})
	}
}

// queueAt queues an event and returns its number.
func (w *world) queueAt(e event) int {
	w.order++
	e.order = w.order
	i, _ := slices.BinarySearchFunc(w.queue, e.at, func(o event, at time.Duration) int {
		if o.at <= at {
			return -1
		}
		return 1
	})
	w.queue = slices.Insert(w.queue, i, e)
	return e.order
}

func (w *world) wakeAt(t *task, at time.Duration) {
	t.at, t.wake = at, w.queueAt(event{at: at, task: t})
}

// after runs f after d, outside of any coroutine.
func (w *world) after(d time.Duration, f func()) { w.queueAt(event{at: w.now + d, f: f}) }

// run runs until a time, or until the first violation.
func (w *world) run(until time.Duration) {
	for w.failed == "" && len(w.queue) > 0 && w.queue[0].at <= until {
		e := w.queue[0]
		w.queue = w.queue[1:]
		w.now = max(w.now, e.at)
		if e.f != nil {
			e.f()
			continue
		}
		t := e.task
		if e.order != t.wake || t.process != nil && t.process.dead {
			continue
		}
		if p := t.process; p != nil {
			if thaw := p.host.frozen; thaw > w.now {
				w.wakeAt(t, thaw)
				continue
			}
			p.steps = append(p.steps, step{task: t.index})
		}
		w.current = t
		d, ok := t.next()
		w.current = nil
		if ok {
			w.wakeAt(t, w.now+max(d, 0))
		}
	}
	w.now = max(w.now, until)
}

func (w *world) end() {
	for _, t := range w.tasks {
		t.stop()
	}
}

type event struct {
	at    time.Duration
	order int
	task  *task
	f     func()
}

// host is a machine with its clocks, its random numbers and its connection to the store.
type host struct {
	id      int
	skew    time.Duration // wall clock minus true time
	asleep  time.Duration // how long the monotonic clock stood still
	frozen  time.Duration // suspended until this time
	cut     time.Duration // cut off from the store until this time
	server  *server       // that it reaches
	machine uint64        // changes when the machine is restored from a snapshot
	// The kernels of copies, and of the original, return the same numbers until they learn of the
	// restore, which takes less than the time that a Keeper waits for.
	kernel  rand.PCG
	reseeds time.Duration // when it learns of a restore, 0: it was not restored, or knows
}

const slowestReseed = lease.Reseeding * 4 / 5

// draw draws a nonce: one that differs between copies, as package entropy sees to, or only the
// kernel's numbers, which must suffice for Keepers that know of their machine's restore.
func (p *process) draw() string {
	w, h := p.w, p.host
	if h.reseeds != 0 && w.now >= h.reseeds {
		h.kernel.Seed(w.rng.Uint64(), w.rng.Uint64())
		h.reseeds = 0
	}
	if p.mixed {
		return hex(w.rng)
	}
	return hex(&h.kernel)
}

// hex returns 32 random digits.
func hex(from rand.Source) string { return fmt.Sprintf("%016x%016x", from.Uint64(), from.Uint64()) }

// clock reads both of its host's clocks at once. A process may be stopped right after that, before
// it uses the time.
func (p *process) clock() (wall time.Time, elapsed time.Duration) {
	wall = ask(p, func() time.Time { return p.w.time().Add(p.host.skew) })
	elapsed = ask(p, func() time.Duration { return p.w.now - p.host.asleep })
	p.pause()
	return wall, elapsed
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
