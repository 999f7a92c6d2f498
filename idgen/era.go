package idgen

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/reports"
	"github.com/traceflake/traceflake/internal/vmclock"
)

// era is a period in which all that a processor has ready may be used. Eras are compared by
// pointer, since their numbers can repeat. An era ends
//
//   - with each second in which IDs are generated, by a timer;
//   - with a step of the clock back: every processor reads the clock again;
//   - with a new generation of the machine, which was restored from a snapshot, or of the source:
//     whoever notices first begins the next era, for all processors.
type era struct {
	generations
	second atomic.Int64 // a timer ends the era at its end; 0: no timer
}

type generations struct {
	version         uint32 // of the machine's page, from before its generation was read
	machine, source uint64
}

// eras is the sequence of eras. For each ID only the current era and the page's version are
// checked.
type eras struct {
	now  atomic.Pointer[era]
	page *atomic.Uint32 // the version of the machine's page

	machine  *vmclock.Machine
	source   generational // nil for other sources
	renew    func()       // replaces what the generator itself has drawn
	changing sync.Mutex   // held while a generation changes
	restores atomic.Int64
	reports  reports.Queue

	after func(d time.Duration, f func()) // starts a timer; nil: there are none
}

func (s *eras) start(c *config) {
	s.machine, s.page, s.after = c.machine, c.machine.Version(), c.after
	s.source, _ = c.source.(generational)
	s.now.Store(&era{generations: s.present()})
}

// current reports whether b belongs to the current era.
func (s *eras) current(b *batch) bool {
	return b.era == s.now.Load() && b.version == s.page.Load()
}

// latest returns the era. If a generation has changed it begins the next one: when it returns, IDs
// of the earlier generation are over for all processors, whoever noticed first.
func (s *eras) latest() *era {
	e := s.now.Load() // before the generations with which it is compared
	if e.generations == s.present() {
		return e
	}
	return s.change(false)
}

// change begins an era if a generation has changed, or if the machine was restored.
func (s *eras) change(restored bool) *era {
	s.changing.Lock()
	defer s.changing.Unlock()
	before, next := s.now.Load(), s.present()
	restored = restored || next.machine != before.machine
	if !restored && next == before.generations {
		return before // another goroutine was first
	}
	if restored {
		s.renew() // before the era begins: none of its IDs may be of the old secret
		s.restores.Add(1)
		s.reports.Add(errRestored)
	}
	e := &era{generations: next}
	s.now.Store(e)
	return e
}

// end begins an era of e's generations, unless e has ended before.
func (s *eras) end(e *era) bool {
	return s.now.CompareAndSwap(e, &era{generations: e.generations})
}

// endWith sets a timer that ends e at the end of ms's second. The timer is a new one each time: one
// that was made inside a synctest bubble must not be reset outside.
func (s *eras) endWith(e *era, ms int64) {
	second := ms / 1000
	if s.after == nil || e.second.Swap(second) == second {
		return
	}
	s.after(time.Duration(1000-ms%1000)*time.Millisecond, func() { s.end(e) })
}

// present returns the current generations.
func (s *eras) present() generations {
	g := generations{version: s.page.Load()}
	g.machine = s.machine.Generation()
	if s.source != nil {
		g.source = s.source.Generation()
	}
	return g
}

var errRestored = errors.New("idgen: this machine was restored from a snapshot: " +
	"IDs generated before it are discarded")
