package idgen

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/vmclock"
)

// life is what ready IDs depend on: the generations of the machine, which change when it is
// restored from a snapshot, and of the source.
type life struct {
	version         uint32 // of the machine's page, from before the generation was read
	machine, source uint64
}

// era is a period in which all that a processor has ready may be used. Eras are compared by their
// addresses: each is a new one, even if its numbers return. An era ends
//
//   - with each second in which IDs are generated, by a timer;
//   - with a step of the clock or a wrong counter: every processor reads the clock again;
//   - with its life: whoever notices first begins the next era, for all processors.
type era struct {
	n uint64 // how many were before it
	life
}

// eras is the sequence of eras. The current one and the page's version are all that is checked for
// each ID.
type eras struct {
	now  atomic.Pointer[era]
	page *atomic.Uint32 // the version of the machine's page

	machine  *vmclock.Machine
	source   Generational // nil if the source is not
	renew    func()       // replaces what the generator itself has drawn
	changing sync.Mutex   // held while a life begins
	restores atomic.Int64
	reports  reports.Queue

	timer   *time.Timer
	armed   atomic.Bool
	untimed atomic.Bool // no timer: nothing stays with a processor
}

func (s *eras) start(m *vmclock.Machine, source Source, timed bool) {
	s.machine, s.page = m, m.Version()
	s.source, _ = source.(Generational)
	s.now.Store(&era{life: s.life()})
	s.untimed.Store(!timed)
	s.timer = time.AfterFunc(time.Hour, func() {
		s.armed.Store(false) // first: a goroutine that sees the new era must arm it again
		s.end()
	})
	s.timer.Stop()
}

// holds reports whether what is ready may be used.
func (s *eras) holds(r *ready) bool {
	return r.era == s.now.Load() && r.version == s.page.Load()
}

// current returns the era. If its life has ended it begins the next one: when it returns, IDs of
// the earlier life are over for all processors, whoever noticed first.
func (s *eras) current() *era {
	e := s.now.Load() // before the life with which it is compared
	if e.life == s.life() {
		return e
	}
	return s.begin(false)
}

// begin begins an era if the life has ended, or if it is told of a restore.
func (s *eras) begin(told bool) *era {
	s.changing.Lock()
	defer s.changing.Unlock()
	before, now := s.now.Load(), s.life()
	restored := told || now.machine != before.machine
	if !restored && now == before.life {
		return before // another goroutine was first
	}
	if restored {
		s.renew() // before the era begins: none of its IDs may be of the old secret
		s.restores.Add(1)
		s.reports.Add(errRestored)
	}
	next := &era{before.n + 1, now}
	s.now.Store(next)
	return next
}

// end ends the era, but not its life.
func (s *eras) end() {
	e := s.now.Load()
	s.now.CompareAndSwap(e, &era{e.n + 1, e.life}) // otherwise it has ended meanwhile
}

// endWith sets the timer to the end of ms's second.
func (s *eras) endWith(ms int64) {
	if s.untimed.Load() || s.armed.Load() || !s.armed.CompareAndSwap(false, true) {
		return
	}
	s.timer.Reset(time.Duration(1000-ms%1000) * time.Millisecond)
	if s.untimed.Load() { // meanwhile
		s.timer.Stop()
	}
}

func (s *eras) close() {
	s.untimed.Store(true)
	s.timer.Stop()
	s.end()
}

func (s *eras) life() life {
	now := life{version: s.page.Load()}
	now.machine = s.machine.Generation()
	if s.source != nil {
		now.source = s.source.Generation()
	}
	return now
}

var errRestored = errors.New("idgen: this machine was restored from a snapshot: " +
	"IDs generated before it are discarded")
