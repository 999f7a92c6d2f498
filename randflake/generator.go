package randflake

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// Errors with which a [Generator] refuses. All are temporary except ErrSealed,
// ErrEndOfLife, and ErrLeaseExpired without an Extend.
var (
	// ErrNoLease is returned by sources of IDs that hold no lease; a Generator
	// always has one. Wait for one.
	ErrNoLease = errors.New("randflake: no lease is held")
	// ErrLeaseNotStarted is returned before the lease's start. Wait for it.
	ErrLeaseNotStarted = errors.New("randflake: the lease has not started")
	// ErrLeaseExpired is returned if the lease is over, or if every ID up to
	// its end is used. Extend the lease, or get another.
	ErrLeaseExpired = errors.New("randflake: the lease is over")
	// ErrExhausted is returned if every ID of this second is used, and those of
	// the seconds that may be borrowed. The next second has new ones.
	ErrExhausted = errors.New("randflake: every ID of this second is used")
	// ErrClockBehind is returned if the clock has fallen behind the last ID by
	// more than may be borrowed: it was stepped back. There are IDs again when
	// it has caught up; another lease has some at once.
	ErrClockBehind = errors.New("randflake: the clock was stepped back")
	// ErrSealed is returned after Seal, and after a guard has returned false.
	ErrSealed = errors.New("randflake: the generator is sealed")
)

// DefaultBorrow is how far the IDs of a burst may run ahead of the clock, and
// how far the clock may step back before IDs are refused.
const DefaultBorrow = 2 * time.Second

// sealed is not a word of any lease: NewGenerator keeps ends below it.
const sealed = ^uint64(0)

// Generator generates the IDs of one lease. It is safe for concurrent use, never
// blocks, and generates no ID twice and none outside its lease, whatever the
// clock does.
//
// Its whole state is one word:
//
//	second << (17+k) | node offset << 17 | sequence
//
// for a lease of 2^k nodes. The word only grows. When the clock has moved on it
// jumps to the clock's second, see [WithStart]; when a second is used up the
// carry runs into the next one, which is borrowed; when the clock steps back the
// word stays, which holds the second.
type Generator struct {
	codec  *Codec
	now    func() time.Time
	guard  func(now time.Time) bool // nil: none
	borrow time.Duration
	start  func(room uint64) uint64
	shift  uint   // bits below the second: 17+k
	node   uint64 // the first node, in its place in the raw word
	first  uint64 // the first word of the lease
	zero   uint64 // the word that encrypts to zero, or sealed

	end atomic.Uint64 // the first word past the lease; only grows

	sealing sync.Once
	unused  time.Time // set by Seal

	_    [64]byte // next is written for every ID; no other data shares its cache line
	next atomic.Uint64
	_    [56]byte
}

// Option configures a [Generator].
type Option func(*Generator)

// WithClock sets the clock; the default, and nil, is [SystemClock]. It must be
// safe for concurrent use.
func WithClock(clock Clock) Option {
	return func(g *Generator) {
		if clock != nil {
			g.now = clock.Now
		}
	}
}

// WithGuard sets a function that decides whether the lease may still be used;
// by default it may. guard is called for every reservation, after the clock is
// read and before a word is taken, with that reading: no ID is generated from a
// reading that guard has not accepted. So it can check, each time or once for
// each new second, what may have happened to the machine since the last call.
//
// If guard returns false the generator is sealed, as by [Generator.Seal], and
// the call returns [ErrSealed]. It is called by many goroutines at once, for
// every ID, and may use the generator only to seal it.
func WithGuard(guard func(now time.Time) bool) Option {
	return func(g *Generator) { g.guard = guard }
}

// WithBorrow sets how far IDs may run ahead of the clock, in a burst or when
// the clock steps back; the default is [DefaultBorrow]. The range is 0, which
// allows neither, to an hour; other values are clamped.
func WithBorrow(d time.Duration) Option {
	return func(g *Generator) { g.borrow = min(max(d, 0), time.Hour) }
}

// WithStart sets where in a second's space the generator begins when its clock
// reaches the second; the default is the first sequence number of the first
// node. The place is draw() modulo seven eighths of the space, which is 131072
// times the lease's nodes: so at least an eighth is left before the next second
// is borrowed.
//
// If draw returns random numbers, copies of a generator, which would otherwise
// repeat each other's IDs for ever, diverge when the next second begins. draw is
// called by many goroutines at once, more than once for some seconds.
func WithStart(draw func() uint64) Option {
	return func(g *Generator) {
		g.start = func(room uint64) uint64 { return draw() % (room - room/8) }
	}
}

// NewGenerator returns the generator of a lease. It returns [ErrInvalidLease]
// if the lease is invalid.
func NewGenerator(c *Codec, l Lease, opts ...Option) (*Generator, error) {
	if c == nil {
		return nil, errors.New("randflake: no codec")
	}
	start, end, err := l.seconds()
	if err != nil {
		return nil, err
	}
	g := &Generator{
		codec:  c,
		now:    time.Now,
		borrow: DefaultBorrow,
		start:  func(uint64) uint64 { return 0 },
		shift:  sequenceBits + uint(bits.TrailingZeros32(l.Nodes)),
		node:   uint64(l.Node) << sequenceBits,
	}
	for _, opt := range opts {
		opt(g)
	}
	g.first = start << g.shift
	g.next.Store(g.first)
	g.end.Store(g.endWord(end))
	g.zero = g.wordOf(c.decrypt(0))
	return g, nil
}

// Next generates one ID. Errors: [ErrLeaseNotStarted], [ErrLeaseExpired],
// [ErrExhausted], [ErrClockBehind], [ErrSealed], [ErrBeforeEpoch],
// [ErrEndOfLife].
func (g *Generator) Next() (ID, error) {
	word, _, err := g.reserve(1)
	if err != nil {
		return 0, err
	}
	return g.codec.encrypt(g.raw(word)), nil
}

// Fill generates len(dst) IDs of one second, in one reservation and one batch
// encryption, which is far cheaper than as many calls of Next. If the second
// has too few left, the next second is used.
//
// It returns how many IDs it wrote and their second. n < len(dst) only with a
// non-nil error: those of [Generator.Next], and ErrExhausted too when dst is
// longer than a second's space, which is 131072 times the lease's nodes.
func (g *Generator) Fill(dst []ID) (n int, second time.Time, err error) {
	if len(dst) == 0 {
		return 0, time.Time{}, nil
	}
	word, count, err := g.reserve(uint64(len(dst)))
	if count == 0 {
		return 0, time.Time{}, err
	}
	g.codec.encryptRun(dst[:count], g.raw(word))
	return int(count), timeOf(word >> g.shift), err
}

// Extend moves the lease's end to a later time. It fails if the generator is
// sealed, or if end is before the current end or past EndOfLife.
func (g *Generator) Extend(end time.Time) error {
	second, err := endSecond(end)
	if err != nil {
		return fmt.Errorf("randflake: extend: %w", err)
	}
	for word := g.endWord(second); ; {
		old := g.end.Load()
		switch {
		case g.next.Load() == sealed:
			return ErrSealed
		case word < old:
			return fmt.Errorf("%w: extend: %s is before the current end, %s", ErrInvalidLease,
				end.UTC().Format(time.RFC3339Nano), timeOf(old>>g.shift).Format(time.RFC3339))
		case g.end.CompareAndSwap(old, word):
			return nil
		}
	}
}

// Seal ends the generator: no reservation succeeds after it. It returns the
// first second of the lease of which no ID was reserved; from there on the
// lease may be returned. IDs reserved earlier may not have reached their
// users yet. Seal may be called again and returns the same.
func (g *Generator) Seal() (unused time.Time) {
	g.sealing.Do(func() {
		word := g.next.Swap(sealed)
		g.unused = timeOf((word + 1<<g.shift - 1) >> g.shift)
	})
	return g.unused
}

// reserve takes n consecutive words of one second, or fewer and an error. No
// other reservation of this generator gets any of them.
func (g *Generator) reserve(n uint64) (word, count uint64, err error) {
	for {
		// The word is read before the clock: so the clock is never older than the word, and a
		// goroutine that was descheduled here is not refused because of reservations in the
		// meantime.
		old := g.next.Load()
		if old == sealed {
			return 0, 0, ErrSealed
		}
		now := g.now()
		if g.guard != nil && !g.guard(now) {
			g.Seal()
			return 0, 0, ErrSealed
		}
		if word, count, err = g.choose(old, n, now); count == 0 {
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

// choose returns the words that follow old at a reading of the clock: n of one second, or fewer
// and an error.
func (g *Generator) choose(old, n uint64, now time.Time) (word, count uint64, err error) {
	second, err := secondOf(now)
	if err != nil {
		return 0, 0, err
	}
	first, room := second<<g.shift, uint64(1)<<g.shift
	if old == g.first && first < g.first {
		return 0, 0, ErrLeaseNotStarted
	}
	if word = old; word <= first { // the first reservation of this second
		word = first + g.start(room)
	}
	latest := second + uint64((time.Duration(now.Nanosecond())+g.borrow)/time.Second)
	if err := g.check(word, latest); err != nil {
		return 0, 0, err
	}
	if count = n; count > room {
		count, err = room, ErrExhausted
	}
	if left := room - word%room; count > left {
		if short := g.check(word+left, latest); short != nil {
			return word, left, short
		}
		word += left
	}
	return word, count, err
}

// check returns nil if word may be used, where seconds up to latest are allowed.
func (g *Generator) check(word, latest uint64) error {
	switch second := word >> g.shift; {
	case word >= g.end.Load():
		return ErrLeaseExpired
	case second > latest+1: // further than a burst can run
		return ErrClockBehind
	case second > latest:
		return ErrExhausted
	}
	return nil
}

// raw returns the raw word of a generator's word. Nodes are aligned, so that
// consecutive words of one second are consecutive raw words.
func (g *Generator) raw(word uint64) uint64 {
	return word>>g.shift<<secondShift | g.node | word&(1<<g.shift-1)
}

// wordOf is the inverse of raw, or sealed for the raw word of another node.
func (g *Generator) wordOf(raw uint64) uint64 {
	low := raw & (1<<secondShift - 1)
	if low&^(1<<g.shift-1) != g.node {
		return sealed
	}
	return raw>>secondShift<<g.shift | low&(1<<g.shift-1)
}

// endWord returns the first word of a second. A lease over every node would have 2^64 words; its
// last second is left out, so that words never wrap and never reach sealed.
func (g *Generator) endWord(second uint64) uint64 {
	if g.shift == secondShift {
		second = min(second, 1<<secondBits-1)
	}
	return second << g.shift
}
