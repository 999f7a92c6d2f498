package idgen

import (
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	batchSize = 256 // IDs made at once
	longest   = 128 // clear halves in the longest run
)

// stock is the state of one processor, so that most IDs write nothing that
// another processor reads: ready IDs of one second, the time, and a run of
// clear halves of the current millisecond. It has one owner at a time.
type stock struct {
	epoch   uint64 // the clock's epoch when the stock was last checked; 0: check it now
	version uint32 // the version of the machine's page at that time
	reading

	word, last uint64 // the run is [word, last)
	made       uint64 // clear halves taken in this millisecond

	next, end   int
	counted     int    // how many IDs before next are counted
	traces      int    // how many of the uncounted ones went to trace IDs
	life        uint64 // the generator's life when they were made
	from, until int64  // Unix milliseconds: they may be used in [from, until)
	ids         [batchSize]randflake.ID
}

// at moves s to the current millisecond by the counter. It reports false if the clock must be
// read, or if the ready IDs belong to another second.
func (s *stock) at(count uint64) bool {
	if count-s.since < s.ticks {
		return true
	}
	if s.ticks == 0 {
		return false
	}
	n := (count - s.origin) / s.ticks
	if n >= trust {
		s.ticks = 0
		return false
	}
	s.ms = s.first + int64(n) // at most trust
	s.since = s.origin + n*s.ticks
	s.drop()
	return s.from <= s.ms && s.ms < s.until
}

// drop abandons the run, because it belongs to another millisecond.
func (s *stock) drop() { s.word, s.last, s.made = 0, 0, 0 }

// run takes a run as long as all earlier ones of this millisecond together: a process that makes
// few trace IDs keeps them in order; one that makes many rarely writes the shared word.
func (s *stock) run(o *order) bool {
	n := min(max(s.made, 1), longest)
	first, ok := o.take(s.ms, n)
	if ok {
		s.word, s.last, s.made = first, first+n, s.made+n
	}
	return ok
}

// take hands out n IDs and returns the first and the last; traces of them are for trace IDs. s
// must have n.
func (s *stock) take(n, traces int) (first, last randflake.ID) {
	first, last = s.ids[s.next], s.ids[s.next+n-1]
	s.next += n
	s.traces += traces
	return first, last
}

// fill makes at least n new IDs, or none if it returns an error.
func (s *stock) fill(source Source, n int) error {
	s.next, s.end, s.counted, s.traces = 0, 0, 0, 0
	count, second, err := source.Fill(s.ids[:])
	if count < 0 || count > len(s.ids) {
		return fmt.Errorf("idgen: the source reported %d IDs, but %d were requested", count, len(s.ids))
	}
	ids := s.ids[:count]
	if slices.Contains(ids, 0) { // randflake never returns zero, which is not a valid ID
		ids = slices.DeleteFunc(ids, func(id randflake.ID) bool { return id == 0 })
	}
	if len(ids) < n {
		if err == nil {
			err = errNoIDs
		}
		return err
	}
	s.end = len(ids)
	s.from = second.Add(-hold).UnixMilli()
	s.until = second.Add(time.Second).UnixMilli()
	return nil
}
