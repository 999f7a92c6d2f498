package randflake

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/traceflake/traceflake/internal/layout"
)

// Errors with which a [Generator] refuses. All are temporary except ErrSealed, ErrEndOfLife, and
// ErrLeaseExpired without an Extend.
var (
	// ErrLeaseNotStarted is returned before the lease's start. Wait for it.
	ErrLeaseNotStarted = errors.New("randflake: the lease has not started")
	// ErrLeaseExpired is returned if the lease is over, or if every ID up to its end is used.
	// Extend the lease, or get another.
	ErrLeaseExpired = errors.New("randflake: the lease is over")
	// ErrExhausted is returned if every ID of this second is used, and those of the seconds that
	// may be borrowed. The next second has new ones.
	ErrExhausted = errors.New("randflake: every ID of this second is used")
	// ErrClockBehind is returned if the clock was stepped back by more than two seconds. Wait
	// until it has caught up, or use another lease.
	ErrClockBehind = errors.New("randflake: the clock was stepped back")
	// ErrSealed is returned after Seal.
	ErrSealed = errors.New("randflake: the generator is sealed")
	// ErrNoLease is returned by sources of IDs that hold no lease at the moment, such as a
	// lease.Keeper, and by a zero [Generator].
	ErrNoLease = errors.New("randflake: no lease is held")
)

// Generator generates the IDs of one lease. It is safe for concurrent use, never blocks, and
// generates no ID twice and none outside its lease, whatever the clock does. A zero Generator has
// no lease and refuses with [ErrNoLease].
//
// Its whole state is one word of its space, which only grows. When the clock has moved on, the word
// jumps to the clock's second. When a second is used up, the carry runs into the next second, which
// is borrowed. When the clock steps back, the word stays in its second.
type Generator struct {
	codec *Codec
	now   func() time.Time
	draw  func() uint64 // returns the first word's offset in a new second; nil: 0
	space space
	first uint64 // the first word of the lease
	zero  uint64 // the raw word that is encrypted to zero

	end atomic.Uint64 // the first word past the lease; only grows

	_    [64]byte // next is written for every ID; no other data shares its cache line
	next atomic.Uint64
	_    [56]byte
}

// Option configures a [Generator].
type Option func(*Generator)

// WithClock sets the clock; the default, and nil, is time.Now. It is read for every reservation,
// and by [Generator.Check], and must be safe for concurrent use. It may call [Generator.Seal]: no
// ID is generated from a reading during which the generator was sealed.
func WithClock(now func() time.Time) Option {
	return func(g *Generator) {
		if now != nil {
			g.now = now
		}
	}
}

// withStart sets where in a second's space IDs begin when the clock reaches the second, instead of
// at the first sequence number of the first node: at draw() modulo seven eighths of the space. So
// at least an eighth is left before the next second is borrowed.
//
// It is for a generator whose secret no other has, that of package idgen: if draw returns random
// numbers, copies of the generator diverge when the next second begins. draw is called by many
// goroutines at once, more than once for some seconds.
func withStart(draw func() uint64) Option {
	return func(g *Generator) { g.draw = draw }
}

func init() { layout.WithStart = func(draw func() uint64) any { return withStart(draw) } }

// NewGenerator returns the generator of a lease. It returns an error if the lease is not as
// [Lease] requires.
func NewGenerator(c *Codec, l Lease, opts ...Option) (*Generator, error) {
	if c == nil || c.cipher == nil {
		return nil, errNoSecret
	}
	start, end, err := l.seconds()
	if err != nil {
		return nil, err
	}
	shift := sequenceBits + uint(bits.TrailingZeros32(l.Nodes))
	space := space{shift: shift, room: 1 << shift, node: uint64(l.Node) << sequenceBits}
	g := &Generator{codec: c, now: time.Now, space: space}
	for _, opt := range opts {
		if opt != nil {
			opt(g)
		}
	}
	g.first = g.space.word(start)
	g.next.Store(g.first)
	g.end.Store(g.space.word(end))
	g.zero = c.decrypt(0)
	return g, nil
}

// Next generates one ID. Errors: [ErrLeaseNotStarted], [ErrLeaseExpired], [ErrExhausted],
// [ErrClockBehind], [ErrSealed], [ErrBeforeEpoch], [ErrEndOfLife], [ErrNoLease].
func (g *Generator) Next() (ID, error) {
	var one [1]ID
	_, _, err := g.Fill(one[:])
	return one[0], err
}

// Fill generates len(dst) IDs of one second, in one reservation and one batch encryption, which is
// far cheaper than as many calls of Next. If too few IDs are left in the second, those of the next
// second are used.
//
// It returns len(dst) and their second, or 0 and an error: those of [Generator.Next], and
// ErrExhausted if dst is longer than a second's space, which is 131072 times the lease's nodes.
func (g *Generator) Fill(dst []ID) (n int, second time.Time, err error) {
	for len(dst) > 0 {
		old, word, err := g.candidate(uint64(len(dst)))
		if err != nil {
			return 0, second, err
		}
		raw := g.space.raw(word)
		if before := g.zero - raw; before < uint64(len(dst)) {
			// One of the IDs would be zero: skip it and those before it.
			g.next.CompareAndSwap(old, word+before+1)
			continue
		}
		// If it succeeds, no other reservation of this generator gets any of these words.
		if g.next.CompareAndSwap(old, word+uint64(len(dst))) {
			g.codec.encryptRun(dst, raw)
			return len(dst), g.space.second(word), nil
		}
	}
	return 0, second, nil
}

// Extend moves the lease's end to a later time. It fails if the generator is sealed, or if end is
// before the current end or past EndOfLife.
func (g *Generator) Extend(end time.Time) error {
	second, err := endSecond(end)
	if err != nil {
		return fmt.Errorf("randflake: extend: %w", err)
	}
	for word := g.space.word(second); ; {
		old := g.end.Load()
		switch {
		case g.next.Load() == sealed:
			return ErrSealed
		case word < old:
			return fmt.Errorf("%w: extend: %s is before the current end, %s", errInvalidLease,
				end.UTC().Format(time.RFC3339Nano), g.space.second(old).Format(time.RFC3339))
		case g.end.CompareAndSwap(old, word):
			return nil
		}
	}
}

// Seal ends the generator: no reservation succeeds after it. IDs reserved earlier may not have
// reached their users yet.
func (g *Generator) Seal() { g.next.Store(sealed) }

// Check returns the error that [Generator.Next] would return now, and takes no ID.
func (g *Generator) Check() error {
	_, _, err := g.candidate(1)
	return err
}

// candidate returns the first word of a reservation of n if the next word is still old.
func (g *Generator) candidate(n uint64) (old, word uint64, err error) {
	if g.codec == nil {
		return 0, 0, ErrNoLease
	}
	// The word is read before the clock: a goroutine that was descheduled in between is not refused
	// because of reservations in the meantime.
	old = g.next.Load()
	if old == sealed {
		return 0, 0, ErrSealed
	}
	now := g.now()
	if g.next.Load() == sealed { // by the clock; Check reserves nothing
		return 0, 0, ErrSealed
	}
	second, err := secondOf(now)
	if err != nil {
		return 0, 0, err
	}
	first, room := g.space.word(second), g.space.room
	word = max(old, first)
	if old <= first && g.draw != nil { // the first reservation of this second
		word += g.draw() % (room - room/8)
	}
	if left := room - word&(room-1); n > left {
		word += left
	}
	latest := second + uint64(layout.Borrow/time.Second)
	// A burst uses up words to this end and no further. The end moves back only if the clock does.
	switch borrowed := g.space.word(latest + 1); {
	case old == g.first && first < old:
		return 0, 0, ErrLeaseNotStarted
	case word >= g.end.Load():
		return 0, 0, ErrLeaseExpired
	case word > borrowed:
		return 0, 0, ErrClockBehind
	case word == borrowed || n > room:
		return 0, 0, ErrExhausted
	}
	return old, word, nil
}
