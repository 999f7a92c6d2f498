package lease

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/traceflake/traceflake/internal/entropy"
	"github.com/traceflake/traceflake/randflake"
)

const (
	// DefaultTTL is how long a grant lasts unless [WithTTL] sets another TTL.
	DefaultTTL = 10 * time.Minute
	// MinTTL is the shortest [Request.TTL].
	MinTTL = time.Second
	// MaxTTL is the longest [Request.TTL].
	MaxTTL = 24 * time.Hour
	// MaxClockAhead is how far a client's clock may be ahead of its store's.
	MaxClockAhead = time.Minute
)

// Errors with which a [Store] refuses. They are definite: nothing was written.
// After any other error of a call that writes, including a context's, it is
// unknown whether it was written.
var (
	// ErrNoFreeNode is returned by Acquire if every block is granted beyond the
	// request's Now. Try again when a lease has ended, or give the store more
	// nodes or smaller blocks.
	ErrNoFreeNode = errors.New("lease: no free block of nodes")
	// ErrClockAhead is returned by Acquire and Renew of a store that has a
	// clock if the client's clock is ahead of it by more than MaxClockAhead.
	// Set the client's clock.
	ErrClockAhead = errors.New("lease: the clock is ahead of the store's")
	// ErrLost is returned by Renew and Release if the block's nonce or version
	// is no longer the grant's. Get returns the current state.
	ErrLost = errors.New("lease: the grant is lost")
	// ErrInvalidRequest is returned if an argument is invalid: a nonce that is
	// not 32 hex digits, a TTL out of range, a node that is not the first of a
	// block.
	ErrInvalidRequest = errors.New("lease: invalid request")
	// ErrBlockSize is returned if a store is opened with a block size other
	// than its own.
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
// acknowledged write is never forgotten, and every call sees all writes that
// were acknowledged before it began. It is safe for concurrent use, by many
// processes on many machines.
//
// The nodes of a store are divided into blocks of equal size. For each it keeps
// one [Block]: each call below changes one block in one atomic step, and every
// change raises the block's version by one. Times are whole seconds, ends are
// exclusive. Seconds granted in one block never overlap (I1), even if the
// clocks of clients or the store are wrong.
//
// Every write can be identified: an Acquire, a Renew and a Release each have a
// fresh nonce of [NewNonce], drawn immediately before the call, which the block
// then has. So a client that got no response can read the block and see who
// wrote it last.
//
// A store that has a clock refuses, with [ErrClockAhead], an Acquire and a Renew
// whose r.Now is later than its own time plus MaxClockAhead. So no grant ends
// later than the longest TTL in use plus MaxClockAhead from the store's time.
//
// A store returns a sentinel of this package if one applies, wrapped with what
// it was doing. It honours ctx: if ctx is cancelled, the error wraps ctx.Err().
// Package driver has the rules as code, for authors of stores.
type Store interface {
	// Acquire grants one free block for r.TTL from r.Now, truncated to a whole
	// second. A block is free if its GrantedUntil is not after r.Now: a grant
	// never starts later than r.Now, and never before the end of the block's
	// last one. The store chooses the block. A store may grant less than r.TTL,
	// never more.
	//
	// If some block has this nonce, its grant may be returned as stored, even if
	// it was extended or is over, and nothing is written. So a request without a
	// response is simply repeated: usually it finds the grant, and otherwise it is
	// granted another block, and the first one is unused until its grant's end.
	//
	// Errors: [ErrNoFreeNode], [ErrClockAhead], [ErrInvalidRequest],
	// [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Renew moves the end of g to r.Now plus r.TTL, truncated to a whole second.
	// It compares nonce and version. It never shortens a grant, but it always
	// writes, even if the end stays the same: the block gets r.Nonce and the
	// next version; the owner stays. It is not idempotent: a repeated call with
	// the same r.Nonce is refused like any call with an old nonce. A grant that
	// is over may be renewed if no one else has the block. A store may set an
	// earlier end than requested; it returns the grant as stored.
	//
	// Errors: [ErrLost] and those of Acquire, except [ErrNoFreeNode].
	Renew(ctx context.Context, g Grant, r Request) (Grant, error)

	// Release gives back the seconds from unused on. It compares nonce and
	// version, and leaves the block with the given nonce, which no client holds:
	// a copy of this client can see that the grant was released, not raised. The
	// generator must have been sealed: the seconds before unused are never
	// granted again.
	//
	// Errors: [ErrLost] (even if it was released already), [ErrInvalidRequest].
	Release(ctx context.Context, g Grant, nonce string, unused time.Time) error

	// Get returns the block that starts at node, as stored: its last grant's
	// start and end, its nonce ("" if it was raised or never granted), version
	// and owner. It writes nothing.
	//
	// Errors: [ErrInvalidRequest] if no block starts at node.
	Get(ctx context.Context, node uint32) (Grant, error)
}

// Admin has the calls for operators; every store here implements it.
type Admin interface {
	// List returns all blocks that have been written, in node order.
	List(ctx context.Context) ([]Block, error)
	// Raise makes GrantedUntil of every block in the store's node range at
	// least until, even of those never granted, and clears every nonce:
	// nothing before until is granted any more, and no earlier grant can be
	// extended. It is for a store that was restored from a backup and may have
	// forgotten grants: raise it to a time after the end of all of them. On a
	// store with a clock that is Time plus the longest TTL in use and
	// MaxClockAhead, plus what the clock may be behind that of the store before.
	// If it fails halfway, call it again.
	//
	// Errors: [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
	Raise(ctx context.Context, until time.Time) error

	// Time returns the time on the store's clock, with which it compares the
	// clocks of its clients, or the zero Time if it has no clock or that of the
	// caller's machine. It writes nothing.
	Time(ctx context.Context) (time.Time, error)
}

// Block is what a store keeps for a block of nodes. Times are whole seconds.
type Block struct {
	Node, Nodes uint32
	// Start is the start of the last grant, the zero Time before the first.
	Start time.Time
	// GrantedUntil is the first second never granted, the zero Time before the
	// first grant. It only grows, except that a Release moves it back.
	GrantedUntil time.Time
	// Nonce is that of the last write: the holder knows it if the block was
	// acquired or renewed, and no client holds it if it was released. It is ""
	// if the block was raised or never granted.
	Nonce string
	// Version is raised by every write; a block never written has version 0.
	Version uint64
	// Owner tells operators who holds the block; see [Request.Owner]. It is ""
	// if the block was released or raised.
	Owner string
}

// Request asks for the time from Now to Now plus TTL: for a block, or for more
// time of a block that is held.
type Request struct {
	// Nonce identifies the write: 128 random bits as 32 lower-case hex digits,
	// fresh for each; see [NewNonce]. Only an Acquire whose response was lost is
	// repeated with the same one.
	Nonce string
	// Now is the client's wall clock.
	Now time.Time
	// TTL is how long the grant lasts from Now, from MinTTL to MaxTTL. An Acquire
	// truncates it to whole seconds.
	TTL time.Duration
	// Owner tells operators who holds the block: at most 128 bytes of printable
	// UTF-8, or empty. No rule depends on it. A Renew ignores it.
	Owner string
}

// Grant is a lease that a store gave to a holder.
type Grant struct {
	randflake.Lease
	Nonce   string
	Version uint64
	Owner   string
}

// NewNonce returns a fresh nonce, which identifies a write.
// Copies of a machine draw different ones even if their kernels have not noticed
// that they were restored.
func NewNonce() string {
	var nonce [16]byte
	entropy.Read(nonce[:])
	return hex.EncodeToString(nonce[:])
}
