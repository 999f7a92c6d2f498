package randflake

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
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
	// ErrClockBehind is returned if the clock has fallen behind the last ID by more than may be
	// borrowed: it was stepped back. There are IDs again when it has caught up; another lease has
	// some at once.
	ErrClockBehind = errors.New("randflake: the clock was stepped back")
	// ErrSealed is returned after Seal, and after a guard has returned false.
	ErrSealed = errors.New("randflake: the generator is sealed")
)

// DefaultBorrow is how far the IDs of a burst may run ahead of the clock, and how far the clock
// may step back before IDs are refused. The whole module uses it: for the order of trace IDs, and
// as the tolerance of their verification.
const DefaultBorrow = 2 * time.Second

// Generator generates the IDs of one lease. It is safe for concurrent use, never blocks, and
// generates no ID twice and none outside its lease, whatever the clock does. A zero Generator has
// no lease and refuses with [ErrNoLease].
//
// Its whole state is one word of its space, which only grows. When the clock has moved on it jumps
// to the clock's second, see [WithStart]; when a second is used up the carry runs into the next
// one, which is borrowed; when the clock steps back the word stays, which holds the second.
type Generator struct {
	config
	codec *Codec
	space space
	first uint64 // the first word of the lease
	zero  uint64 // the word that encrypts to zero, or sealed

	end atomic.Uint64 // the first word past the lease; only grows

	sealing sync.Once
	unused  time.Time // set by Seal

	_    [64]byte // next is written for every ID; no other data shares its cache line
	next atomic.Uint64
	_    [56]byte
}

type config struct {
	clock  Clock
	borrow time.Duration
	guard  func(now time.Time) bool // nil: none
	draw   func() uint64            // of the place in a new second; nil: the first
}

// Option configures a [Generator].
type Option func(*config)

// WithClock sets the clock; the default, and nil, is [SystemClock]. It must be safe for concurrent
// use.
func WithClock(clock Clock) Option {
	return func(c *config) {
		if clock != nil {
			c.clock = clock
		}
	}
}

// WithBorrow sets how far IDs may run ahead of the clock, in a burst or when the clock steps back;
// the default is [DefaultBorrow]. The range is 0, which allows neither, to an hour; other values
// are clamped.
func WithBorrow(d time.Duration) Option {
	return func(c *config) { c.borrow = min(max(d, 0), time.Hour) }
}

// NewGenerator returns the generator of a lease. It returns [ErrInvalidLease] if the lease is
// invalid.
func NewGenerator(c *Codec, l Lease, opts ...Option) (*Generator, error) {
	if c == nil || c.cipher == nil {
		return nil, errNoSecret
	}
	start, end, err := l.seconds()
	if err != nil {
		return nil, err
	}
	g := &Generator{
		config: config{clock: SystemClock{}, borrow: DefaultBorrow},
		codec:  c,
		space:  space{sequenceBits + uint(bits.TrailingZeros32(l.Nodes)), uint64(l.Node) << sequenceBits},
	}
	for _, opt := range opts {
		if opt != nil {
			opt(&g.config)
		}
	}
	g.first = g.space.word(start)
	g.next.Store(g.first)
	g.end.Store(g.space.word(end))
	g.zero = g.space.of(c.decrypt(0))
	return g, nil
}

// Next generates one ID. Errors: [ErrLeaseNotStarted], [ErrLeaseExpired], [ErrExhausted],
// [ErrClockBehind], [ErrSealed], [ErrBeforeEpoch], [ErrEndOfLife], [ErrNoLease].
func (g *Generator) Next() (ID, error) {
	word, _, err := g.reserve(1)
	if err != nil {
		return 0, err
	}
	return g.codec.encrypt(g.space.raw(word)), nil
}

// Fill generates len(dst) IDs of one second, in one reservation and one batch encryption, which is
// far cheaper than as many calls of Next. If the second has too few left, the next second is used.
//
// It returns how many IDs it wrote and their second. n < len(dst) only with a non-nil error: those
// of [Generator.Next], and ErrExhausted too when dst is longer than a second's space, which is
// 131072 times the lease's nodes.
func (g *Generator) Fill(dst []ID) (n int, second time.Time, err error) {
	if len(dst) == 0 {
		return 0, time.Time{}, nil
	}
	word, count, err := g.reserve(uint64(len(dst)))
	if count == 0 {
		return 0, time.Time{}, err
	}
	g.codec.encryptRun(dst[:count], g.space.raw(word))
	return int(count), g.space.second(word), err
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
			return fmt.Errorf("%w: extend: %s is before the current end, %s", ErrInvalidLease,
				end.UTC().Format(time.RFC3339Nano), g.space.second(old).Format(time.RFC3339))
		case g.end.CompareAndSwap(old, word):
			return nil
		}
	}
}

// Seal ends the generator: no reservation succeeds after it. It returns the first second of the
// lease of which no ID was reserved; from there on the lease may be returned. IDs reserved earlier
// may not have reached their users yet. Seal may be called again and returns the same.
func (g *Generator) Seal() (unused time.Time) {
	g.sealing.Do(func() {
		word := g.next.Swap(sealed)
		g.unused = g.space.second(word + g.space.room() - 1)
	})
	return g.unused
}

// Check returns the error that [Generator.Next] would return now, and takes no ID.
func (g *Generator) Check() error {
	_, _, _, err := g.look(1)
	return err
}

// reserve takes n consecutive words of one second, or fewer and an error. No other reservation of
// this generator gets any of them.
func (g *Generator) reserve(n uint64) (word, count uint64, err error) {
	for {
		old, word, count, err := g.look(n)
		if count == 0 {
			return 0, 0, err
		}
		if g.zero-word < count {
			// One of them would be zero: skip it and those before it.
			g.next.CompareAndSwap(old, g.zero+1)
			continue
		}
		if g.next.CompareAndSwap(old, word+count) {
			return word, count, err
		}
	}
}

// look returns the words that a reservation of n would take if the next word is still old.
func (g *Generator) look(n uint64) (old, word, count uint64, err error) {
	if g.codec == nil {
		return 0, 0, 0, ErrNoLease
	}
	// The word is read before the clock: so the clock is never older than the word, and a goroutine
	// that was descheduled here is not refused because of reservations in the meantime.
	old = g.next.Load()
	if old == sealed {
		return 0, 0, 0, ErrSealed
	}
	now := g.clock.Now()
	if g.guard != nil && !g.guard(now) {
		g.Seal()
		return 0, 0, 0, ErrSealed
	}
	word, count, err = g.choose(old, n, now)
	return old, word, count, err
}

// choose returns the words that follow old at a reading of the clock: n of one second, or fewer
// and an error.
func (g *Generator) choose(old, n uint64, now time.Time) (word, count uint64, err error) {
	second, err := secondOf(now)
	if err != nil {
		return 0, 0, err
	}
	first, room := g.space.word(second), g.space.room()
	if old == g.first && first < g.first {
		return 0, 0, ErrLeaseNotStarted
	}
	if word = old; word <= first { // the first reservation of this second
		word = first
		if g.draw != nil {
			word += g.draw() % (room - room/8)
		}
	}
	latest := second + uint64((time.Duration(now.Nanosecond())+g.borrow)/time.Second)
	// A burst uses up words to this end and no further, and it only moves back if the clock does.
	borrowed, end := g.space.word(latest+1), g.end.Load()
	refusal := func(word uint64) error {
		switch {
		case word >= end:
			return ErrLeaseExpired
		case word > borrowed:
			return ErrClockBehind
		case word == borrowed:
			return ErrExhausted
		}
		return nil
	}
	if err := refusal(word); err != nil {
		return 0, 0, err
	}
	if count = n; count > room {
		count, err = room, ErrExhausted
	}
	if left := g.space.left(word); count > left {
		if short := refusal(word + left); short != nil {
			return word, left, short
		}
		word += left
	}
	return word, count, err
}
