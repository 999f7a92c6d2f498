package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	// DefaultTTL is how long a grant lasts unless [WithTTL] says otherwise.
	DefaultTTL = 10 * time.Minute
	// MinTTL is the shortest [Request.TTL].
	MinTTL = time.Second
	// MaxTTL is the longest [Request.TTL].
	MaxTTL = 24 * time.Hour
	// MaxClockAhead is how far a client's clock may be ahead of its store's.
	MaxClockAhead = time.Minute
)

// What a [Store] says no with. They are definite: nothing was written. Any
// other error of a call that writes, a context's among them, leaves open
// whether it was.
var (
	// ErrNoFreeNode comes from Acquire when every block is granted until later
	// than the request's Now. Try again when a lease has ended, or give the
	// store more nodes or smaller blocks.
	ErrNoFreeNode = errors.New("lease: no free block of nodes")
	// ErrClockAhead comes from Acquire and Renew of a store that knows the
	// time when the client's clock is ahead of it by more than MaxClockAhead.
	// Set the client's clock.
	ErrClockAhead = errors.New("lease: the clock is ahead of the store's")
	// ErrLost comes from Renew and Release when the block's holder or version
	// is no longer the grant's. The grant cannot grow any more; the seconds
	// granted so far stay its own.
	ErrLost = errors.New("lease: the grant is lost")
	// ErrInvalidRequest comes when an argument makes no sense: a holder that is
	// not 32 hex digits, a TTL out of range, a block that is none of the store's.
	ErrInvalidRequest = errors.New("lease: invalid request")
	// ErrBlockSize comes when a store is opened with another number of nodes a
	// block than it was first used with.
	ErrBlockSize = errors.New("lease: the store has another block size")
	// ErrSchemaVersion comes when a store was written by a newer version of
	// this library, or is not a store of leases at all.
	ErrSchemaVersion = errors.New("lease: the store has an unknown schema version")
)

// Store grants blocks of nodes. It must be linearizable and durable: an
// acknowledged write is never forgotten, and every call sees those that were
// answered before it began. It is safe for concurrent use, by many processes
// on many machines.
//
// The nodes of a store are divided into blocks of equal size ([NodeRange]).
// For each it keeps one [Block], whose methods are the rule by which a store
// changes it: each call below changes one block in one atomic step, and every
// change raises the block's version by one. Times are whole seconds, ends are
// exclusive. Seconds granted in one block never overlap (I1), whatever the
// clocks of clients and store say.
//
// A store errs with a sentinel of this package where one fits, wrapped with
// what it was doing. It honours ctx: a cancelled one gives an error that wraps
// ctx.Err().
type Store interface {
	// Acquire grants one free block for the seconds from r.Now, cut to a whole
	// second, for r.TTL; see [Block.Acquire]. A block is free when its
	// GrantedUntil is not after r.Now: a grant never starts later than r.Now,
	// and never before the end of the block's last one. Which of the free
	// blocks is the store's choice. A store may grant less than r.TTL, never
	// more.
	//
	// It is idempotent by r.Holder: while some block has this holder, its grant
	// is returned as it is stored, extended or over as it may be, and nothing
	// is written. So a lost answer is asked for again with the same request.
	//
	// Errors: [ErrNoFreeNode], [ErrClockAhead], [ErrInvalidRequest],
	// [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Renew moves the end of g to end; see [Block.Renew]. It compares holder
	// and version, and never shortens: an end that is not later than the stored
	// one gives the grant as it is stored and writes nothing. A grant that is
	// over may be renewed as long as no one else has the block.
	//
	// A store that knows the time refuses an end later than its own time plus
	// MaxTTL plus MaxClockAhead.
	//
	// Errors: [ErrLost], [ErrClockAhead], [ErrInvalidRequest].
	Renew(ctx context.Context, g Grant, end time.Time) (Grant, error)

	// Release gives back the seconds from unused on and frees the holder; see
	// [Block.Release]. It compares holder and version. The generator must have
	// been sealed: the seconds before unused stay used for ever.
	//
	// Errors: [ErrLost] (also when it was released already), [ErrInvalidRequest].
	Release(ctx context.Context, g Grant, unused time.Time) error

	// Get returns what the store holds for the block of g, of which only Node
	// is looked at: its last grant's start and end, its holder ("" when it was
	// released, raised or never granted) and version. It writes nothing.
	//
	// Errors: [ErrInvalidRequest] when no block starts at g.Node.
	Get(ctx context.Context, g Grant) (Grant, error)
}

// Admin is what an operator needs; every store here implements it.
type Admin interface {
	// List returns the blocks that were ever written, in the order of nodes.
	List(ctx context.Context) ([]Block, error)
	// Raise makes GrantedUntil of every block in the store's node range at
	// least until, also of those never granted, and frees every holder: nothing
	// before until is granted any more, and no grant made before grows. It is
	// for a store that came back from a backup and may have forgotten grants:
	// raise it to a time that none of them can reach, which is the time of the
	// restore plus the longest TTL in use and MaxClockAhead. When it fails
	// half-way it may be called again.
	//
	// Errors: [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
	Raise(ctx context.Context, until time.Time) error
}

// Request asks for a block.
type Request struct {
	// Holder names the grant: 128 random bits as 32 lower-case hex digits,
	// fresh for each grant; see [NewHolder].
	Holder string
	// Now is the client's wall clock.
	Now time.Time
	// TTL is how long the grant is to last, from MinTTL to MaxTTL; fractions of
	// a second are cut off.
	TTL time.Duration
}

// Grant is a lease that a store gave to a holder.
type Grant struct {
	randflake.Lease
	Holder  string
	Version uint64
}

// NewHolder returns a fresh name for a grant.
func NewHolder() string {
	var nonce [holderLen / 2]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return hex.EncodeToString(nonce[:])
}

const holderLen = 32

// Check refuses a request that no store may grant. storeNow is the store's own
// time, or the zero Time when it knows none. Errors: [ErrInvalidRequest],
// [ErrClockAhead], [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
func (r Request) Check(storeNow time.Time) error {
	if err := checkHolder(r.Holder); err != nil {
		return err
	}
	if r.TTL < MinTTL || r.TTL > MaxTTL {
		return fmt.Errorf("%w: TTL %s, want %s to %s", ErrInvalidRequest, r.TTL, MinTTL, MaxTTL)
	}
	switch {
	case r.Now.Unix() < randflake.Epoch:
		return fmt.Errorf("lease: acquire: %w", randflake.ErrBeforeEpoch)
	case r.Now.Unix() >= randflake.EndOfLife:
		return fmt.Errorf("lease: acquire: %w", randflake.ErrEndOfLife)
	case !storeNow.IsZero() && r.Now.After(storeNow.Add(MaxClockAhead)):
		return fmt.Errorf("%w by %s", ErrClockAhead, r.Now.Sub(storeNow).Round(time.Second))
	}
	return nil
}

// CheckRenewal refuses an end that a client with a sound clock would not ask
// for: one later than the store's own time plus MaxTTL plus MaxClockAhead.
func CheckRenewal(end, storeNow time.Time) error {
	if end.After(storeNow.Add(MaxTTL + MaxClockAhead)) {
		return fmt.Errorf("%w: it asks for an end in %s", ErrClockAhead, end.Sub(storeNow).Round(time.Second))
	}
	return nil
}

// CheckRaise refuses a time that no block can be raised to. Errors:
// [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
func CheckRaise(until time.Time) error {
	switch {
	case until.Unix() < randflake.Epoch:
		return fmt.Errorf("lease: raise: %w", randflake.ErrBeforeEpoch)
	case roundUp(until).Unix() > randflake.EndOfLife:
		return fmt.Errorf("lease: raise: %w", randflake.ErrEndOfLife)
	}
	return nil
}

func checkHolder(holder string) error {
	if len(holder) != holderLen {
		return fmt.Errorf("%w: holder %q, want %d lower-case hex digits", ErrInvalidRequest, holder, holderLen)
	}
	for _, c := range holder {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("%w: holder %q, want %d lower-case hex digits", ErrInvalidRequest, holder, holderLen)
		}
	}
	return nil
}
