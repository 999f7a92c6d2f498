package idgen

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/vmclock"
)

// era is a period in which all that a processor has ready may be used. Eras are compared by their
// addresses: each is a new one, even if its numbers return. An era ends
//
//   - with each second in which IDs are generated, by a timer;
//   - with a step of the clock or a wrong counter: every processor reads the clock again;
//   - with a new generation of the machine, which was restored from a snapshot, or of the source:
//     whoever notices first begins the next era, for all processors.
type era struct {
	version         uint32 // of the machine's page, from before its generation was read
	machine, source uint64 // generations
}

// eras is the sequence of eras. The current one and the page's version are all that is checked for
// each ID.
type eras struct {
	now  atomic.Pointer[era]
	page *atomic.Uint32 // the version of the machine's page

	machine  *vmclock.Machine
	source   Generational // nil if the source is not
	renew    func()       // replaces what the generator itself has drawn
	changing sync.Mutex   // held while a generation changes
	restores atomic.Int64
	reports  reports.Queue

	timer   *time.Timer
	armed   atomic.Bool
	untimed atomic.Bool // no timer: nothing stays with a processor
}

func (s *eras) start(m *vmclock.Machine, source Source, timed bool) {
	s.machine, s.page = m, m.Version()
	s.source, _ = source.(Generational)
	first := s.present()
	s.now.Store(&first)
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

// current returns the era. If a generation has changed it begins the next one: when it returns, IDs
// of the earlier generation are over for all processors, whoever noticed first.
func (s *eras) current() *era {
	e := s.now.Load() // before the generations with which it is compared
	if *e == s.present() {
		return e
	}
	return s.begin(false)
}

// begin begins an era if a generation has changed, or if it is told of a restore.
func (s *eras) begin(told bool) *era {
	s.changing.Lock()
	defer s.changing.Unlock()
	before, next := s.now.Load(), s.present()
	restored := told || next.machine != before.machine
	if !restored && next == *before {
		return before // another goroutine was first
	}
	if restored {
		s.renew() // before the era begins: none of its IDs may be of the old secret
		s.restores.Add(1)
		s.reports.Add(errRestored)
	}
	s.now.Store(&next)
	return &next
}

// end begins an era of the same generations.
func (s *eras) end() {
	e := s.now.Load()
	next := *e
	s.now.CompareAndSwap(e, &next) // otherwise it has ended meanwhile
}

// endWith sets the timer to the end of ms's second.
func (s *eras) endWith(ms int64) {
	if s.untimed.Load() || s.armed.Load() || !s.armed.CompareAndSwap(false, true) {
		return
	}
	s.timer.Reset(time.Duration(1000-ms%1000) * time.Millisecond)
}

func (s *eras) close() {
	s.untimed.Store(true)
	s.timer.Stop()
	s.end()
}

// present returns an era of the present generations.
func (s *eras) present() era {
	e := era{version: s.page.Load()}
	e.machine = s.machine.Generation()
	if s.source != nil {
		e.source = s.source.Generation()
	}
	return e
}

var errRestored = errors.New("idgen: this machine was restored from a snapshot: " +
	"IDs generated before it are discarded")
