package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
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

// Errors with which a [Store] refuses. They are definite: nothing was written.
// Any other error of a call that writes, a context's among them, leaves open
// whether it was.
var (
	// ErrNoFreeNode is returned by Acquire if every block is granted until
	// later than the request's Now. Try again when a lease has ended, or give
	// the store more nodes or smaller blocks.
	ErrNoFreeNode = errors.New("lease: no free block of nodes")
	// ErrClockAhead is returned by Acquire and Renew of a store that knows the
	// time if the client's clock is ahead of it by more than MaxClockAhead.
	// Set the client's clock.
	ErrClockAhead = errors.New("lease: the clock is ahead of the store's")
	// ErrLost is returned by Renew and Release if the block's holder or version
	// is no longer the grant's. Get tells what happened.
	ErrLost = errors.New("lease: the grant is lost")
	// ErrInvalidRequest is returned if an argument makes no sense: a holder
	// that is not 32 hex digits, a TTL out of range, a node at which no block of
	// the store starts.
	ErrInvalidRequest = errors.New("lease: invalid request")
	// ErrBlockSize is returned if a store is opened with another number of
	// nodes a block than it was first used with.
	ErrBlockSize = errors.New("lease: the store has another block size")
	// ErrSchemaVersion is returned if a store was written by a newer version of
	// this library, or is not a store of leases at all.
	ErrSchemaVersion = errors.New("lease: the store has an unknown schema version")
	// ErrMisconfigured is returned if the store refuses this client and waiting
	// does not help: a database, a role or a right is missing. An operator has
	// to change the store or the client's settings.
	ErrMisconfigured = errors.New("lease: the store refuses this client")
)

// Store grants blocks of nodes. It must be linearizable and durable: an
// acknowledged write is never forgotten, and every call sees those that were
// answered before it began. It is safe for concurrent use, by many processes
// on many machines.
//
// The nodes of a store are divided into blocks of equal size. For each it keeps
// one [Block]: each call below changes one block in one atomic step, and every
// change raises the block's version by one. Times are whole seconds, ends are
// exclusive. Seconds granted in one block never overlap (I1), whatever the
// clocks of clients and store say.
//
// Every write names itself: an Acquire, a Renew and a Release each carry a
// fresh nonce of [NewHolder], drawn immediately before the call, which becomes
// the block's holder. So a client that got no answer reads the block and knows
// who wrote it last.
//
// A store returns a sentinel of this package where one fits, wrapped with what
// it was doing. It honours ctx: a cancelled one gives an error that wraps
// ctx.Err(). Package driver has the rule as code, for authors of stores.
type Store interface {
	// Acquire grants one free block for the seconds from r.Now, cut to a whole
	// second, for r.TTL. A block is free if its GrantedUntil is not after
	// r.Now: a grant never starts later than r.Now, and never before the end of
	// the block's last one. Which of the free blocks is the store's choice. A
	// store may grant less than r.TTL, never more.
	//
	// It is idempotent by r.Holder: while some block has this holder, its grant
	// is returned as it is stored, extended or over as it may be, and nothing
	// is written. So a lost answer is asked for again with the same request.
	//
	// Errors: [ErrNoFreeNode], [ErrClockAhead], [ErrInvalidRequest],
	// [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Renew moves the end of g to end and makes next the block's holder. It
	// compares holder and version. It never shortens, but it always writes, also
	// if the end stays: next is the holder and the version is one more. It is
	// not idempotent: repeated with the same next it is refused like any call
	// with an old holder. A grant that is over may be renewed as long as no one
	// else has the block.
	//
	// A store that knows the time refuses an end later than its own time plus
	// MaxTTL plus MaxClockAhead. A store may move the end less far than it was
	// asked to; it returns the grant as it is stored.
	//
	// Errors: [ErrLost], [ErrClockAhead], [ErrInvalidRequest].
	Renew(ctx context.Context, g Grant, next string, end time.Time) (Grant, error)

	// Release gives back the seconds from unused on. It compares holder and
	// version, and leaves next as the block's holder: nobody holds it, and a
	// copy of this client can tell that the grant was not raised away but given
	// back. The generator must have been sealed: the seconds before unused stay
	// used for ever.
	//
	// Errors: [ErrLost] (also if it was released already), [ErrInvalidRequest].
	Release(ctx context.Context, g Grant, next string, unused time.Time) error

	// Get returns what the store has for the block of g, of which only Node is
	// looked at: its last grant's start and end, its holder ("" if it was raised
	// or never granted), version and owner. It writes nothing.
	//
	// Errors: [ErrInvalidRequest] if no block starts at g.Node.
	Get(ctx context.Context, g Grant) (Grant, error)
}

// Admin is what an operator needs; every store here implements it.
type Admin interface {
	// List returns the blocks that were ever written, in the order of nodes.
	List(ctx context.Context) ([]Block, error)
	// Raise makes GrantedUntil of every block in the store's node range at
	// least until, also of those never granted, and empties every holder:
	// nothing before until is granted any more, and no grant made before grows.
	// It is for a store that came back from a backup and may have forgotten
	// grants: raise it to a time that none of them can reach, which is the time
	// of the restore plus the longest TTL in use and MaxClockAhead. If it fails
	// half-way it may be called again.
	//
	// Errors: [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
	Raise(ctx context.Context, until time.Time) error
}

// Block is what a store keeps for a block of nodes. Times are whole seconds.
type Block struct {
	Node, Nodes uint32
	// Start is the start of the last grant, the zero Time before the first.
	Start time.Time
	// GrantedUntil is the first second never granted, the zero Time before the
	// first grant. It only grows, except that a Release moves it back.
	GrantedUntil time.Time
	// Holder is the nonce of the last write: the holder's if the block was
	// acquired or renewed, nobody's if it was released. It is "" if the block
	// was raised or never granted.
	Holder string
	// Version is raised by every write; a block never written has version 0.
	Version uint64
	// Owner says who holds the block, for operators; see [Request.Owner]. It is
	// "" if the block was released or raised.
	Owner string
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
	// Owner says to operators who holds the block: at most 128 bytes of
	// printable UTF-8, or nothing. No rule depends on it. A Renew keeps it.
	Owner string
}

// Grant is a lease that a store gave to a holder.
type Grant struct {
	randflake.Lease
	Holder  string
	Version uint64
	Owner   string
}

// NewHolder returns a fresh nonce, which names a write and the grant that it
// makes. It is read from the kernel: copies of a machine that was restored from
// a snapshot draw different ones wherever the kernel knows of the restore.
func NewHolder() string {
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return hex.EncodeToString(nonce[:])
}
