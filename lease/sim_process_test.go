package lease_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// process is one life of a program, or several once it is copied. A copy is built like the
// original: it gets the same answers from the world, and takes the same steps in the same order. So
// a process asks the world for all its input, and the answers are kept.
type process struct {
	w      *world
	id     int
	host   *host
	mixed  bool // its nonces depend on more than the kernel
	keeper *lease.Loop
	ctx    context.Context
	cancel context.CancelFunc
	tasks  []*task // the first is the Keeper's goroutine
	life   *life
	grants []held // known to it from the store

	answers []any // answers of the world
	told    int   // how many answers it has read again while the copy is made
	copying bool
	steps   []step
	parted  time.Duration // when it was last copied

	asked   []string // the nonces of its Acquires
	again   string   // the next nonce, in a wrong variant
	dead    bool     // killed, or ended
	closing bool
	armed   bool          // will be copied during its next call to the store
	burst   int           // IDs to make at once
	lastID  time.Duration // when the last one was made
}

// runs reports whether the process is neither dead nor about to end.
func (p *process) runs() bool { return !p.dead && !p.closing }

// step is a task that runs until its next sleep, or an action on the process.
type step struct {
	task int
	done func(*process)
}

// ask returns the world's answer, or repeats an earlier answer.
func ask[T any](p *process, world func() T) T {
	if p.copying {
		answer := p.answers[p.told].(T)
		p.told++
		return answer
	}
	answer := world()
	p.answers = append(p.answers, answer)
	return answer
}

// do performs an action on the process.
func (p *process) do(f func(*process)) {
	p.steps = append(p.steps, step{done: f})
	f(p)
}

func (w *world) start(h *host) *process {
	p := w.newProcess(h)
	// A Keeper made before the kernel learns of a restore cannot know of it.
	p.mixed = (!w.vmclock || h.reseeds > w.now) && !w.wrong("nonces of the kernel alone")
	p.build()
	for _, t := range p.tasks {
		w.wakeAt(t, w.now)
	}
	w.logf("process %d starts on host %d", p.id, h.id)
	return p
}

func (w *world) newProcess(h *host) *process {
	p := &process{w: w, id: len(w.processes), host: h}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.life = newLife(p, nil)
	w.processes = append(w.processes, p)
	return p
}

func (p *process) build() {
	w := p.w
	p.keeper = must(lease.NewLoop(client{w.engine(link{p: p}, p), p}, testSecrets,
		lease.WithTTL(w.ttl), lease.WithClock(p.clock),
		lease.WithMeterProvider(noop.NewMeterProvider()), lease.WithErrorHandler(func(error) {}),
		lease.WithMachine(func() uint64 {
			if w.wrong("a restored machine continues") {
				return 0
			}
			return ask(p, func() uint64 { return p.host.machine })
		})))
	p.keeper.SetJitter(func() float64 { return ask(p, w.rng.Float64) })
	p.keeper.SetNonces(p.nonce)
	p.keeper.ReportAtOnce()
	if w.wrong("nonces drawn at once after a restore") {
		p.keeper.SetReseeding(0)
	}
	p.tasks = append(p.tasks, w.spawn(p, p.keep))
	for range ask(p, func() int { return 1 + w.rng.IntN(3) }) {
		p.tasks = append(p.tasks, w.spawn(p, p.work))
	}
}

func (p *process) nonce() string {
	if again := p.again; again != "" {
		p.again = ""
		return again
	}
	return ask(p, func() string {
		nonce := p.draw()
		drawn := p.w.ledger.drawn
		drawn[nonce] = append(drawn[nonce], p.life)
		return nonce
	})
}

// keep is the Keeper's goroutine.
func (p *process) keep() {
	for !p.closing {
		select {
		case <-p.keeper.Kick():
		default:
		}
		p.sleep(min(p.keeper.Step(p.ctx), 10*time.Second))
	}
	p.dead = true
	p.w.logf("process %d ends", p.id)
}

// work generates IDs.
func (p *process) work() {
	w := p.w
	buf := make([]randflake.ID, 256)
	for {
		n := ask(p, func() int {
			if w.rng.IntN(10) == 0 {
				return len(buf)
			}
			return 1 + w.rng.IntN(8)
		})
		_, err := p.fill(buf[:n])
		if p.burst > 0 {
			err = p.makeBurst()
		}
		switch {
		case errors.Is(err, lease.ErrClosed):
			return
		case err != nil:
			p.sleep(p.between(time.Millisecond, time.Second))
		default:
			p.sleep(p.between(0, 200*time.Millisecond))
		}
	}
}

func (p *process) fill(dst []randflake.ID) (int, error) {
	n, second, err := p.keeper.Fill(dst)
	if p.copying {
		return n, err
	}
	if n > 0 {
		p.lastID = p.w.now
		p.w.ledger.add(p, dst[:n], second)
	}
	if len(p.keeper.Kick()) > 0 {
		p.w.wakeAt(p.tasks[0], p.w.now)
	}
	return n, err
}

// exhaust lets the process generate more IDs than it may borrow.
func (p *process) exhaust() {
	p.w.logf("process %d makes a burst of IDs", p.id)
	p.do(func(p *process) { p.burst = 450_000 * int(p.w.about.BlockSize) })
}

// makeBurst generates IDs as fast as it can until none are left.
func (p *process) makeBurst() error {
	buf := make([]randflake.ID, 30_000)
	for p.burst > 0 && p.w.failed == "" {
		n, err := p.fill(buf)
		p.burst -= n
		if err != nil {
			p.burst = 0
			return err
		}
	}
	return nil
}

func (p *process) sleep(d time.Duration) { p.w.sleep(d) }

func (p *process) between(a, b time.Duration) time.Duration {
	return ask(p, func() time.Duration { return p.w.between(a, b) })
}

// pause sometimes stops the running coroutine for a while.
func (p *process) pause() {
	w := p.w
	d := ask(p, func() time.Duration {
		if w.current == nil || w.current.process != p || !w.chance(w.pauses) {
			return -1
		}
		switch w.rng.IntN(10) {
		case 0:
			return w.between(0, 2*w.ttl)
		case 1, 2, 3:
			return w.between(0, 3*time.Second)
		default:
			return w.between(0, 200*time.Millisecond)
		}
	})
	if d >= 0 {
		p.sleep(d)
	}
}

// kill ends the process at once. Its pending requests may still reach the store.
func (p *process) kill() {
	p.dead = true
	p.w.logf("process %d is killed", p.id)
}

// close ends the process in an orderly way.
func (p *process) close() {
	p.w.logf("process %d closes", p.id)
	p.do(func(p *process) {
		p.closing = true
		p.keeper.Seal()
		p.cancel()
	})
	p.w.wakeAt(p.tasks[0], p.w.now)
}

// copy copies the process to another host, with its state and pending calls.
func (p *process) copy(h *host) *process {
	w := p.w
	q := w.newProcess(h)
	q.mixed, q.copying, q.answers = p.mixed, true, slices.Clone(p.answers)
	q.build()
	running := w.current
	for _, s := range p.steps {
		if s.done != nil {
			s.done(q)
			continue
		}
		w.current = q.tasks[s.task]
		w.current.next()
	}
	w.current = running
	if q.told != len(q.answers) {
		panic("the copy does not repeat what the original did")
	}
	q.copying, q.steps, q.lastID = false, slices.Clone(p.steps), p.lastID
	q.grants = slices.Clone(p.grants)
	common := p.life
	p.life, q.life = newLife(p, common), newLife(q, common)
	p.parted, q.parted = w.now, w.now
	for i, t := range p.tasks {
		w.wakeAt(q.tasks[i], max(t.at, w.now))
	}
	w.logf("process %d is copied: process %d on host %d", p.id, q.id, h.id)
	return q
}
