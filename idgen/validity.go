package idgen

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/traceflake/traceflake/internal/vmclock"
)

// validity decides whether what a processor has ready may still be used. Whatever ends that
// changes one of the two numbers in [seen], so all that is checked for each ID is two numbers:
//
//   - A timer ends the epoch with each second in which IDs are generated: ready IDs do not outlive it.
//   - A step of the clock or a wrong counter ends the epoch: every processor reads the clock again.
//   - A restore changes the machine's page. Whoever notices it first begins a new life.
//   - So does whoever notices a new generation of the source, which is checked with the clock.
type validity struct {
	epoch   atomic.Uint64
	machine *vmclock.Machine
	source  Generational // nil if the source is not
	renew   func()       // replaces what the generator itself has drawn

	life     atomic.Pointer[life]
	changing sync.Mutex
	restores atomic.Int64

	timer   *time.Timer
	armed   atomic.Bool
	untimed atomic.Bool // no timer: everything is checked for each ID
}

// seen is what a processor saw when it last checked what it has ready. The zero value means that
// it must check again.
type seen struct {
	epoch   uint64
	machine uint32 // the version of its page
}

// life holds the generations under which IDs are generated. IDs of an earlier life are not handed
// out. Lives are compared by their addresses: each is a new one, even if the numbers return.
type life struct{ machine, source uint64 }

func (v *validity) start(m *vmclock.Machine, source Source, timed bool) {
	v.machine = m
	v.source, _ = source.(Generational)
	v.epoch.Store(1)
	v.untimed.Store(!timed)
	v.timer = time.AfterFunc(time.Hour, func() {
		v.armed.Store(false) // first: a goroutine that sees the new epoch must arm it again
		v.end()
	})
	v.timer.Stop()
}

// holds reports whether nothing has changed since s was seen.
func (v *validity) holds(s seen) bool {
	return s.epoch == v.epoch.Load() && s.machine == v.machine.Version()
}

// see returns what a processor must load before it checks what it has ready: whatever changes in
// the meantime differs from it.
func (v *validity) see() seen { return seen{v.epoch.Load(), v.machine.Version()} }

// end ends the epoch.
func (v *validity) end() { v.epoch.Add(1) }

// endAfter sets the timer to the end of ms's second. It reports false if there is no timer.
func (v *validity) endAfter(ms int64) bool {
	if v.untimed.Load() {
		return false
	}
	if !v.armed.Load() && v.armed.CompareAndSwap(false, true) {
		v.timer.Reset(time.Duration(1000-ms%1000) * time.Millisecond)
		if v.untimed.Load() { // closed in the meantime
			v.timer.Stop()
		}
	}
	return true
}

func (v *validity) close() {
	v.untimed.Store(true)
	v.timer.Stop()
	v.end()
}

// current returns the current life. It begins a new one if the machine was restored or the source
// has a new generation; when it returns, the earlier life is over for all processors, whichever
// goroutine noticed first.
func (v *validity) current() *life {
	l := v.life.Load() // before the generations with which it is compared
	if *l == v.generations() {
		return l
	}
	return v.change(false)
}

// change begins a new life if there is a reason, or if it is told of a restore.
func (v *validity) change(told bool) *life {
	l, restored := v.begin(told)
	if restored {
		v.restores.Add(1)
		otel.Handle(errRestored)
	}
	return l
}

func (v *validity) begin(told bool) (l *life, restored bool) {
	v.changing.Lock()
	defer v.changing.Unlock()
	l, now := v.life.Load(), v.generations()
	restored = told || now.machine != l.machine
	if !restored && now == *l {
		return l, false // another goroutine was first
	}
	if restored {
		v.renew() // before the life begins: none of its IDs may be of the old secret
	}
	l = &now
	v.life.Store(l)
	v.end()
	return l, restored
}

func (v *validity) generations() life {
	now := life{machine: v.machine.Generation()}
	if v.source != nil {
		now.source = v.source.Generation()
	}
	return now
}

var errRestored = errors.New("idgen: this machine was restored from a snapshot: " +
	"IDs generated before it are discarded")
