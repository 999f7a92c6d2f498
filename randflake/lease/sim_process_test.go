package lease

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/traceflake/traceflake/randflake"
)

// source is what a simulated process makes IDs with: a Keeper, or a twin of
// one around a generator that is wrong.
type source interface {
	Fill(dst []randflake.ID) (n int, second time.Time, err error)
	step(ctx context.Context) time.Duration
	// stopMaking and giveBackAll are the two halves of Close.
	seal()
	giveBackAll(ctx context.Context) error
}

// process is one life of a program.
type process struct {
	w       *world
	id      int
	host    *host
	src     source
	kick    chan struct{}
	keeper  *task
	ctx     context.Context
	cancel  context.CancelFunc
	granted []string // the holders it asked with
	saved   []string // those of its former life
	dead    bool     // killed, or over
	closing bool
	frozen  time.Duration
	burst   int           // IDs to make at once
	lastID  time.Duration // when the last one was made
}

func (w *world) start(h *host, former *process) *process {
	p := &process{w: w, id: len(w.processes), host: h}
	if former != nil {
		p.saved = former.granted
	}
	w.processes = append(w.processes, p)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if w.variant.generator != nil {
		twin := &twinKeeper{p: p, store: client{w, p}}
		p.src, p.kick = twin, make(chan struct{})
	} else {
		k, err := newKeeper(client{w, p}, w.ledger.codec, WithTTL(w.ttl), WithMaxBlocks(1+w.rng.IntN(3)),
			WithClock(clock{w, p}), WithMeterProvider(noop.NewMeterProvider()), WithErrorHandler(func(error) {}))
		if err != nil {
			panic(err)
		}
		k.jitter = w.rng.Float64
		p.src, p.kick = k, k.kick
	}
	w.logf("process %d starts on host %d", p.id, h.id)
	p.keeper = w.spawn(p, p.keep)
	for range 1 + w.rng.IntN(3) {
		w.spawn(p, p.work)
	}
	return p
}

// keep is the Keeper's goroutine.
func (p *process) keep() {
	for !p.closing {
		select {
		case <-p.kick:
		default:
		}
		p.w.sleep(min(p.src.step(p.ctx), 10*time.Second))
	}
	_ = p.src.giveBackAll(context.Background())
	p.dead = true
	p.w.logf("process %d is over", p.id)
}

// work makes IDs.
func (p *process) work() {
	w := p.w
	buf := make([]randflake.ID, 256)
	for {
		n := 1 + w.rng.IntN(8)
		if w.rng.IntN(10) == 0 {
			n = len(buf)
		}
		_, err := p.fill(buf[:n])
		if p.burst > 0 {
			err = p.makeBurst()
		}
		switch {
		case errors.Is(err, ErrClosed):
			return
		case err != nil:
			w.sleep(w.between(time.Millisecond, time.Second))
		default:
			w.sleep(w.between(0, 200*time.Millisecond))
		}
	}
}

func (p *process) fill(dst []randflake.ID) (int, error) {
	n, second, err := p.src.Fill(dst)
	if n > 0 {
		p.lastID = p.w.now
		p.w.ledger.add(p, dst[:n], second)
	}
	if len(p.kick) > 0 {
		p.w.wakeAt(p.keeper, p.w.now)
	}
	return n, err
}

// makeBurst makes IDs as fast as it can until there are no more.
func (p *process) makeBurst() error {
	buf := make([]randflake.ID, 30_000)
	for p.burst > 0 && p.w.failed == nil {
		n, err := p.fill(buf)
		p.burst -= n
		if err != nil {
			p.burst = 0
			return err
		}
	}
	return nil
}

// kill ends the process at once. What it had under way may still reach the
// store.
func (p *process) kill() {
	p.dead = true
	p.w.logf("process %d is killed", p.id)
}

// close ends the process in good order.
func (p *process) close() {
	p.w.logf("process %d closes", p.id)
	p.closing = true
	p.src.seal()
	p.cancel()
	p.w.wakeAt(p.keeper, p.w.now)
}

// resume is what a wrong restart does: it takes up a grant of its former life.
func (p *process) resume(holder string) string {
	if len(p.saved) > 0 {
		holder, p.saved = p.saved[len(p.saved)-1], p.saved[:len(p.saved)-1]
	}
	return holder
}
