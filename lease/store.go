package lease

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/traceflake/traceflake/randflake"
)

const (
	// DefaultTTL is the length of a grant unless [WithTTL] sets another.
	DefaultTTL = 10 * time.Minute
	// MinTTL is the shortest [Request.TTL]. Times are whole seconds, and a renewal at half of a
	// shorter TTL would not move the end.
	MinTTL = 2 * time.Second
	// MaxTTL is the longest [Request.TTL].
	MaxTTL = 24 * time.Hour
	// MaxOwner is the longest [Request.Owner], in bytes.
	MaxOwner = 128
)

// Errors with which a [Store] refuses. They are definite: nothing was written. After any other
// error of a call that writes, including a context's, it is unknown whether it was written.
// [Permanent] reports whether retrying can help.
var (
	// ErrNoFreeNode is returned by Acquire if every block is granted beyond the request's Now. Try
	// again when a lease has ended, or create a store with more nodes or smaller blocks.
	ErrNoFreeNode = errors.New("lease: no free block of nodes")
	// ErrClockAhead is returned by Acquire and Renew if the client's clock is more than a minute
	// ahead of the store's clock.
	ErrClockAhead = fixable("lease: the clock is ahead of the store's", "set this machine's clock")
	// ErrLost is returned by Renew and Release if the block's nonce or version is no longer the
	// grant's. Get returns the current state.
	ErrLost = errors.New("lease: the grant is lost")
	// ErrInvalidRequest is returned if an argument is invalid: a nonce that is not 32 hex digits,
	// a TTL out of range, a node that is not the first of a block.
	ErrInvalidRequest = errors.New("lease: invalid request")
	// ErrNoStore is returned if no store exists, or if its creation was interrupted.
	ErrNoStore = fixable("lease: no lease store exists here",
		"if it was never created, or that was interrupted: traceflake lease create; if it was "+
			"lost, see \"Changing the store\" in docs/leases.md")
	// ErrReplacing is returned by Describe, Acquire and List while an operator replaces the store's
	// secret, or after that was interrupted.
	ErrReplacing = fixable("lease: the store's secret is being replaced",
		"if that was interrupted, repeat traceflake lease secret replace")
	// ErrExists is returned when a store is created where another one exists.
	ErrExists = errors.New("lease: another lease store exists here")
	// ErrReplaced is returned if the store has another ID than the request: its secret was
	// replaced, or another store has taken its place. Current leases are used to their ends. A
	// [Keeper] then reads its secret again.
	ErrReplaced = errors.New("lease: the store has another ID: its secret was replaced, or " +
		"another store has taken its place")
	// ErrMoved is returned if the store was created elsewhere: it was moved, or it is a copy whose
	// original may grant the same nodes.
	ErrMoved = fixable("lease: the store was created elsewhere",
		"give it a new secret: traceflake lease secret replace")
	// ErrWrongSecret is returned if the secret is not, or no longer, registered with the store: two
	// stores that grant the same nodes under one secret would cause duplicates. A [Keeper] then
	// reads its secret again.
	ErrWrongSecret = fixable("lease: the store belongs to another secret",
		"use the secret file that lease create, or the last lease secret replace, wrote; or "+
			"register a new secret: traceflake lease secret add")
	// ErrSchemaVersion is returned if a store was written by a newer version of this library, or
	// is not a lease store at all.
	ErrSchemaVersion = fixable("lease: the store has an unknown schema version",
		"if another program keeps its data there, leave it alone and correct the address; if a "+
			"newer traceflake wrote it, install that version")
	// ErrMisconfigured is returned if the store refuses this client until an operator changes the
	// store or the client's settings: a database, a role or a right is missing.
	ErrMisconfigured = errors.New("lease: the store refuses this client")
)

// Permanent reports whether retrying cannot help: an operator has to change something.
func Permanent(err error) bool { return permanent(err) != nil }

// permanent returns the sentinel that makes an error permanent, or nil.
func permanent(err error) error {
	for _, e := range []error{ErrInvalidRequest, ErrNoStore, ErrMoved, ErrWrongSecret,
		ErrSchemaVersion, ErrMisconfigured} {
		if errors.Is(err, e) {
			return e
		}
	}
	return nil
}

// Store grants blocks of nodes. It must be linearizable and durable: an acknowledged write is
// never forgotten, and every call sees all writes that were acknowledged before it began. It is
// safe for concurrent use, by many processes on many machines. Package driver has its rules as
// code.
//
// An operator creates a store once. Its nodes are divided into blocks of equal size.
// For each it keeps the last [Grant]: each call below changes one block in one atomic step, and
// every change raises the block's version by one. Times are whole seconds, ends are exclusive.
// Seconds granted in one block never overlap (I1), even if the clocks of clients or the store are
// wrong.
//
// Every Acquire, Renew and Release has a fresh nonce, drawn immediately before the call, and stores
// it in the block. So a client that got no response can read the block and see who wrote it last.
//
// A store that has a clock refuses, with [ErrClockAhead], an Acquire and a Renew whose r.Now is
// more than a minute later than its own time. So no grant ends later than the longest TTL in use
// plus a minute from the store's time.
//
// Each history of a store has an ID, [Description.ID], and a secret. A store that was restored from
// a backup or moved gets a new ID, a new secret, and blocks that were never granted. Every call
// that reads or changes a block compares the ID with its own in the same atomic step, and returns
// [ErrReplaced] if it differs: so whatever was forgotten, IDs of two histories collide only as
// random numbers would.
//
// A store returns a sentinel of this package if one applies, wrapped with what it was doing. If
// ctx is cancelled, the error wraps ctx.Err().
type Store interface {
	// Describe returns what was recorded when the store was created, or its secret replaced. It
	// writes nothing. If that was interrupted, it returns the description together with
	// [ErrNoStore] or [ErrReplacing]; if there is nothing, the ID is "".
	Describe(ctx context.Context) (Description, error)

	// Acquire grants one free block for r.TTL from r.Now, truncated to a whole second. A block is
	// free if its End is not after r.Now: a grant never starts later than r.Now, and never before
	// the end of the block's last one. The store chooses the block. It grants at most r.TTL, and
	// at most [Description.LongestTTL].
	//
	// If some block has this nonce, its grant may be returned as stored, even if it was extended or
	// is over, and nothing is written. So a client repeats a request that got no response: usually
	// it finds the grant; otherwise it gets another block, and the first one stays unused until its
	// grant's end.
	//
	// Errors: [ErrNoFreeNode], [ErrClockAhead], [ErrReplaced], [ErrReplacing], [ErrWrongSecret],
	// [ErrInvalidRequest], [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Renew moves the end of g to r.Now plus r.TTL, truncated to a whole second. It compares the
	// store's ID, nonce and version with g's. It never shortens a grant, but it always writes, even
	// if the end stays the same: the block gets r.Nonce and the next version; the owner stays. It
	// is not idempotent: a repeated call with the same r.Nonce is refused like any call with an old
	// nonce. A grant that is over may be renewed if no one else has the block. A store may set an
	// earlier end than requested; it returns the grant as stored.
	//
	// Errors: [ErrLost], [ErrReplaced], [ErrWrongSecret], [ErrClockAhead] and those of invalid
	// requests.
	Renew(ctx context.Context, g Grant, r Request) (Grant, error)

	// Release gives back the seconds from unused on. It compares as Renew does, and leaves the
	// block with the given nonce, which no client holds: a copy of this client can see that the
	// grant was released. The generator must have been sealed: the seconds before unused are never
	// granted again.
	//
	// Errors: [ErrLost] (even if it was released already), [ErrReplaced], [ErrInvalidRequest].
	Release(ctx context.Context, g Grant, nonce string, unused time.Time) error

	// Get returns the block of g as stored. It writes nothing.
	//
	// Errors: [ErrReplaced], [ErrInvalidRequest] if no block starts at g's node.
	Get(ctx context.Context, g Grant) (Grant, error)
}

// Description holds what a store records when it is created.
type Description struct {
	// ID identifies a history of the store: 128 random bits as 32 lower-case hex digits.
	ID string
	// Replaced is the ID that the store had before its secret was replaced, or "".
	Replaced string `json:",omitempty"`
	// Created is the time of creation, by the clock of the operator's machine.
	Created time.Time
	// The store grants nodes [First, First+Nodes), in blocks of BlockSize.
	First, Nodes, BlockSize uint32
	// LongestTTL is the longest TTL that is granted.
	LongestTTL time.Duration
	// Secrets are the fingerprints of the secrets with which leases are used; see Fingerprint.
	Secrets []string
}

// Fingerprint returns the text by which the store recognizes a secret: 16 hex digits that reveal
// nothing about the secret and differ between stores.
func (d Description) Fingerprint(c *randflake.Codec) string {
	key := c.Derive("lease store " + d.ID)
	return hex.EncodeToString(key[:8])
}

// Blocks returns the number of blocks.
func (d Description) Blocks() int { return int(d.Nodes / max(d.BlockSize, 1)) }

// Request asks for the time from Now to Now plus TTL: for a block, or for more time of a block
// that is held.
type Request struct {
	// Store is the [Description.ID] with which the secret in use was compared. A Renew ignores it:
	// the grant has it.
	Store string
	// Secret is the [Description.Fingerprint] of the secret in use, or "" in a store without
	// registered secrets.
	Secret string
	// Nonce identifies the write: 128 random bits as 32 lower-case hex digits, fresh for each. Only
	// an Acquire whose response was lost is repeated with the same one.
	Nonce string
	// Now is the client's wall clock.
	Now time.Time
	// TTL is the length of the grant from Now, from [MinTTL] to [MaxTTL]. An Acquire truncates it
	// to whole seconds.
	TTL time.Duration
	// Owner tells operators who holds the block: at most [MaxOwner] bytes of printable UTF-8, or
	// empty. No rule depends on it. A Renew ignores it.
	Owner string
}

// Grant is the state of a block of nodes in a store: the last lease that it granted. Times are
// whole seconds.
type Grant struct {
	// Store is the [Description.ID] of the history to which the block belongs.
	Store string `json:"-"`
	// Start is the zero Time before the first grant. End is the first second that was never
	// granted: it only grows, except that a Release moves it back.
	randflake.Lease
	// Nonce is the nonce of the last write. The client that acquired or renewed the block knows it;
	// after a release no client does. It is "" if the block was never granted.
	Nonce string
	// Version increases with every write; a block that was never written has version 0.
	Version uint64
	// Owner tells operators who has the block; see [Request.Owner]. It is "" if the block was
	// released.
	Owner string
	// Behind is how far the holder's clock was behind the store's at the last write, in whole
	// seconds, if that was more than a minute: by the store's clock, the lease ends later by as
	// much, and the block may be granted to others before. Otherwise, and in a store without a
	// clock, it is 0.
	Behind time.Duration `json:",omitempty"`
}

// Free reports whether the block may be granted at a time, truncated to a whole second: if End is
// not after it.
func (g Grant) Free(now time.Time) bool { return g.End.Unix() <= now.Unix() }
