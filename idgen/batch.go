package idgen

import (
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// batchSize IDs are made at once.
const batchSize = 256

// batch holds ready-made IDs of one second. It has one owner at a time.
type batch struct {
	from, until int64 // Unix milliseconds: it may be used in [from, until)
	generation  uint64
	next, end   int
	counted     int // how many of those before next are counted
	traces      int // how many of those between went to trace IDs
	ids         [batchSize]randflake.ID
}

// take hands out n IDs, the first and the last of which it returns; traces of
// them are for trace IDs. It refuses when it has too few, and when its second
// is over: an ID should tell the second in which it was given to somebody. And
// it refuses when the source is at another generation.
func (b *batch) take(n, traces int, now int64, generation uint64) (first, last randflake.ID, ok bool) {
	next := b.next + n
	if next > b.end || now < b.from || now >= b.until || b.generation != generation {
		return 0, 0, false
	}
	first, last = b.ids[b.next], b.ids[next-1]
	b.next = next
	b.traces += traces
	return first, last, true
}

// fill makes new IDs, at least n of them. On an error the batch is empty.
func (b *batch) fill(s Source, n int) error {
	b.next, b.end, b.counted, b.traces = 0, 0, 0, 0
	count, second, err := s.Fill(b.ids[:])
	if count < 0 || count > len(b.ids) {
		return fmt.Errorf("idgen: the source says that it gave %d IDs, asked for %d", count, len(b.ids))
	}
	ids := b.ids[:count]
	if slices.Contains(ids, 0) { // never from randflake, but zero is no valid ID
		ids = slices.DeleteFunc(ids, func(id randflake.ID) bool { return id == 0 })
	}
	if len(ids) < n {
		if err == nil {
			err = errNoIDs
		}
		return err
	}
	b.end = len(ids)
	b.from = second.Add(-hold).UnixMilli()
	b.until = second.Add(time.Second).UnixMilli()
	return nil
}
