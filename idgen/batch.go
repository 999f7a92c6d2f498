package idgen

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// batchSize is how many IDs are generated at once.
const batchSize = 256

// batch holds ready IDs of one second, generated in one life: ids[next:end].
type batch struct {
	next, end int
	from      int64 // Unix milliseconds: they may be used in [from, from+usable)
	life      *life
	ids       [batchSize]randflake.ID
}

// usable is for how many milliseconds IDs may be used: their second may be borrowed, or held while
// the clock is behind.
const usable = int64((hold + time.Second) / time.Millisecond)

func (b *batch) has(n int) bool { return b.next+n <= b.end }

// covers reports whether the IDs may be used at ms.
func (b *batch) covers(ms int64) bool { return uint64(ms-b.from) < uint64(usable) }

// ahead returns by how many milliseconds the IDs' second is ahead of ms.
func (b *batch) ahead(ms int64) int64 { return b.from + hold.Milliseconds() - ms }

// current reports whether ms is in the IDs' second.
func (b *batch) current(ms int64) bool { return b.covers(ms) && b.ahead(ms) <= 0 }

// take hands out n IDs and returns the first and the last. There must be n.
func (b *batch) take(n int) (first, last randflake.ID) {
	first, last = b.ids[b.next], b.ids[b.next+n-1]
	b.next += n
	return first, last
}

func (b *batch) drop() { b.next, b.end = 0, 0 }

// fill generates at least n new IDs, or none if it returns an error.
func (b *batch) fill(source Source, n int) error {
	b.drop()
	count, second, err := source.Fill(b.ids[:])
	if count < 0 || count > len(b.ids) {
		return fmt.Errorf("idgen: the source reported %d IDs, but %d were requested", count, len(b.ids))
	}
	ids := b.ids[:count]
	if slices.Contains(ids, 0) { // randflake never returns zero, which is not a valid ID
		ids = slices.DeleteFunc(ids, func(id randflake.ID) bool { return id == 0 })
	}
	if len(ids) < n {
		if err == nil {
			err = errNoIDs
		}
		return err
	}
	b.end, b.from = len(ids), second.Add(-hold).UnixMilli()
	return nil
}

var errNoIDs = errors.New("idgen: the source returned no IDs and no error")
