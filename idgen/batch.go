package idgen

import (
	"time"

	"github.com/traceflake/traceflake/randflake"
)

// The first batch of an era has minBatch IDs, and each further one twice as many, up to maxBatch.
// So a processor discards at most minBatch IDs more than it has used.
const (
	minBatch = 256
	maxBatch = 1024
)

// batch holds what a processor (a P of Go's scheduler) needs for the next IDs, so that most calls
// write nothing that another processor reads. It has one owner at a time: the processor in whose
// slot it is, or the goroutine that has detached it. Most IDs need its first cache line and that of
// the ID.
type batch struct {
	era       *era   // in which it was checked
	version   uint32 // of the machine's page, as in era
	next, end uint32 // ids[next:end] are ready
	size      uint32 // of the next fill
	run       run    // clear halves of the millisecond
	since     uint64 // the counter when a clock was read
	last      uint64 // the counter at the last call
	ms        int64  // Unix milliseconds
	from      int64  // Unix milliseconds: the IDs may be used in [from, from+usable)

	// On the monotonic clock:
	begins time.Duration // the millisecond
	read   time.Duration // when the wall clock was read

	ids [maxBatch]randflake.ID
}

// usable is how many milliseconds IDs may be used: their second may be borrowed, or held while the
// clock is behind.
const usable = int64((hold + time.Second) / time.Millisecond)

func (b *batch) has(n uint32) bool { return b.next+n <= b.end }

// covers reports whether the IDs may be used in this millisecond.
func (b *batch) covers() bool { return uint64(b.ms-b.from) < uint64(usable) }

// ready reports whether n IDs may be used in this millisecond.
func (b *batch) ready(n uint32) bool { return b.has(n) && b.covers() }

// ahead returns by how many milliseconds the IDs' second is ahead.
func (b *batch) ahead() int64 { return b.from + hold.Milliseconds() - b.ms }

// id hands out an ID. At least one must be ready.
func (b *batch) id() uint64 {
	b.next++
	return uint64(b.ids[(b.next-1)%maxBatch])
}

// set moves b to a millisecond. A run is of one millisecond only.
func (b *batch) set(ms int64) {
	if ms != b.ms {
		b.ms, b.run = ms, run{}
	}
}

// enter moves b to an era and discards the IDs of an earlier one. A run ends when b is attached.
func (b *batch) enter(e *era) {
	b.version = e.version
	if b.era != e {
		b.era, b.size = e, minBatch
		b.next, b.end = 0, 0
	}
}
