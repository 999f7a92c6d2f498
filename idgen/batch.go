package idgen

import (
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// batchSize IDs are made at once. One batch a processor is in use at a time.
const batchSize = 256

// batch holds ready-made IDs of one second. It has one owner at a time.
type batch struct {
	from, until int64 // Unix milliseconds: it may be used in [from, until)
	next, end   int
	ids         [batchSize]randflake.ID
}

// take hands out n IDs, or nil when the batch has too few or its second is
// over: an ID should tell the second in which it was given to somebody.
func (b *batch) take(n int, now int64) []randflake.ID {
	if b.end-b.next < n || now < b.from || now >= b.until {
		return nil
	}
	b.next += n
	return b.ids[b.next-n : b.next]
}

// fill makes new IDs. On an error, or without n IDs, the batch is empty.
func (b *batch) fill(s Source, n int) error {
	b.next, b.end = 0, 0
	count, second, err := s.Fill(b.ids[:])
	// IDs of zero are invalid; randflake makes none, another source might.
	ids := slices.DeleteFunc(b.ids[:count], func(id randflake.ID) bool { return id == 0 })
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
