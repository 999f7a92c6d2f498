package lease

import (
	"context"
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

// Errors with which a [Store] refuses. They are definite: the caller got nothing. After any other
// error of a call that writes, including a context's, it is unknown whether it was written.
// [Permanent] reports whether retrying can help.
var (
	// ErrNoFreeNode is returned by Acquire if every block is granted beyond the request's Now. Try
	// again when a lease has ended, or create a store with more nodes or smaller blocks.
	ErrNoFreeNode = errors.New("lease: no free block of nodes")
	// ErrClockAhead is returned by Acquire and Renew if the client's clock is more than a minute
	// ahead of the store's clock.
	ErrClockAhead = fixable("lease: the clock is ahead of the store's", "set this machine's clock")
	// ErrLost is returned by Renew if the block's nonce or version is no longer the grant's. Get
	// returns the current state.
	ErrLost = errors.New("lease: the grant is lost")
	// ErrInvalidRequest is returned if an argument is invalid: a nonce that is not 32 hex digits,
	// a TTL out of range, a node that is not the first of a block.
	ErrInvalidRequest = errors.New("lease: invalid request")
	// ErrNoStore is returned if no store exists, or if its creation was interrupted.
	ErrNoStore = fixable("lease: no lease store exists here",
		"if it was never created, or that was interrupted: traceflake lease create; if it was "+
			"lost, see https://github.com/traceflake/traceflake/blob/main/docs/leases.md"+
			"#changing-the-store")
	// ErrExists is returned when a store is created where one exists.
	ErrExists = errors.New("lease: a lease store exists here")
	// ErrHistory is returned if the store has another history than the request. The caller
	// describes the store and leases in that history; its current lease is used to its end.
	ErrHistory = errors.New("lease: the store has another history")
	// ErrBeginning is returned while somebody begins a history, or after that was interrupted.
	// Begin waits for it, or begins another one.
	ErrBeginning = errors.New("lease: a history of the store is being begun")
	// ErrMoved is returned if the store's history was begun elsewhere: the store was restored or
	// moved, a standby was promoted, or it is a copy whose original may grant the same nodes. Begin
	// begins a history here. A store without a secret has no remedy but an operator's, so the error
	// is then an [ErrMisconfigured], too.
	ErrMoved = errors.New("lease: the store's history was begun elsewhere")
	// ErrContradicted is returned if the store shows what it cannot have after what it shows
	// elsewhere: under a complete description, a page of another history, or none. So it was set
	// back, in part. A [Keeper] also reports it if the store lacks what it acknowledged. Begin
	// begins a history, with the reason [Contradicted].
	ErrContradicted = errors.New("lease: the store contradicts itself: it was set back")
	// ErrWrongSecret is returned if none of this process's secrets is that of the store's history.
	ErrWrongSecret = fixable("lease: the store's history has another secret",
		"add the line of that secret to this process's secret file; if the secret is lost: "+
			"traceflake lease rekey")
	// ErrKeyless is returned if IDs are requested from a store that was created without a secret,
	// which is for [Nodes], or nodes from one with a secret, which is for IDs.
	ErrKeyless = errors.New("lease: the store is of the other kind")
	// ErrSchemaVersion is returned if a store was written by another version of this library, or is
	// not a lease store at all.
	ErrSchemaVersion = fixable("lease: the store has an unknown schema version",
		"if another program keeps its data there, leave it alone and correct the address; if a "+
			"newer traceflake wrote it, install that version; if an older one did, create another "+
			"store")
	// ErrUnavailable is returned if no server was reached, or the connection broke. Its text is
	// that of the connection's error.
	ErrUnavailable = errors.New("lease: the store is unavailable")
	// ErrDiskFull is returned if the store has no space left. Its text is the server's.
	ErrDiskFull = errors.New("lease: the store's disk is full")
	// ErrMisconfigured is returned if the store refuses this client until an operator changes the
	// store or the client's settings: a database, a role or a right is missing.
	ErrMisconfigured = errors.New("lease: the store refuses this client")
)

// Permanent reports whether retrying cannot help: an operator has to change something.
func Permanent(err error) bool { return permanent(err) != nil }

// permanent returns the sentinel that makes an error permanent, or nil.
func permanent(err error) error {
	for _, e := range []error{ErrInvalidRequest, ErrNoStore, ErrWrongSecret, ErrKeyless,
		ErrSchemaVersion, ErrMisconfigured} {
		if errors.Is(err, e) {
			return e
		}
	}
	return nil
}

// Store grants blocks of nodes. Within a history it is linearizable and durable: an acknowledged
// write is never forgotten, and every call sees all writes that were acknowledged before it began.
// It is safe for concurrent use, by many processes on many machines.
//
// An operator creates a store once. Its nodes are divided into blocks of equal size.
// For each it keeps the last [Grant]: each call below changes one block in one atomic step, and
// every change raises the block's version by one. Times are whole seconds, ends are exclusive.
// Seconds granted in one block of a history never overlap (I1), even if the clocks of clients or
// the store are wrong.
//
// Every Acquire and Renew has a fresh nonce, drawn immediately before the call, and stores it in
// the block. So a client that got no response can read the block and see who wrote it last.
//
// A store that has a clock refuses, with [ErrClockAhead], an Acquire and a Renew whose r.Now is
// more than a minute later than its own time. So no grant ends later than the longest TTL in use
// plus a minute from the store's time.
//
// A store that forgets, since it was restored from a backup, moved, copied or failed over, begins
// another [History], in which no block was ever granted. IDs of two histories collide only as
// random numbers would, because each has its own key; see [HistoryCodec]. A history belongs to the
// place where it was begun. Every call compares history and place: where the server can, in the
// atomic step that writes, and in every store after it, so a grant is returned only if the
// description, read after the write, shows that its history is complete, and here. Otherwise the
// call returns [ErrHistory], [ErrBeginning] or [ErrMoved], even if it has written a block.
//
// A store returns a sentinel of this package if one applies, wrapped with what it was doing. If
// ctx is cancelled, the error wraps ctx.Err().
type Store interface {
	// Describe returns the description of the store. It writes nothing, and usually sends one
	// request. If the store grants nothing, it returns the description together with [ErrNoStore],
	// [ErrBeginning] or [ErrMoved]; if there is nothing, the ID is "".
	Describe(ctx context.Context) (Description, error)

	// Acquire grants one free block for r.TTL from r.Now, truncated to a whole second. A block is
	// free if its End is not after r.Now: a grant never starts later than r.Now, and never before
	// the end of the block's last one. The store chooses the block. It grants at most r.TTL, and
	// at most [Description.LongestTTL].
	//
	// If some block has this nonce, its grant may be returned as stored, even if it is over, and
	// nothing is written. So a client repeats a request that got no response: usually it finds the
	// grant; otherwise it gets another block, and the first one stays unused until its grant's end.
	//
	// Errors: [ErrNoFreeNode], [ErrClockAhead], [ErrHistory], [ErrBeginning], [ErrMoved],
	// [ErrContradicted], [ErrInvalidRequest], [randflake.ErrBeforeEpoch],
	// [randflake.ErrEndOfLife].
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Renew moves the end of g to r.Now plus r.TTL, truncated to a whole second. It compares the
	// history, nonce and version with g's. It never shortens a grant, but it always writes, even
	// if the end stays the same: the block gets r.Nonce and the next version; owner and Acquired
	// stay. It is not idempotent: a repeated call with the same r.Nonce is refused like any call
	// with an old nonce. A grant that is over may be renewed if no one else has the block. A store
	// may set an earlier end than requested; it returns the grant as stored.
	//
	// Errors: [ErrLost], and those of Acquire except ErrNoFreeNode.
	Renew(ctx context.Context, g Grant, r Request) (Grant, error)

	// Get returns the block of g as stored. It writes nothing.
	//
	// Errors: [ErrHistory], [ErrBeginning], [ErrMoved], [ErrContradicted], [ErrInvalidRequest] if
	// no block starts at g's node.
	Get(ctx context.Context, g Grant) (Grant, error)

	// Begin begins a history of the store, from any state of it, and returns the description. No
	// block is granted in it. If the store has another history than r.Leaves, complete and here,
	// Begin writes nothing and returns that description with [ErrHistory]. If somebody else is
	// beginning one, it waits for as long as that advances, and otherwise begins its own.
	//
	// Each attempt draws the ID of its history, as a hash of random bits and the place. After an
	// error nobody completes what Begin has written, and another call begins another history. It
	// may take minutes: limit ctx accordingly. After a restore of the machine, wait until its
	// kernel has learned of it before the call, and discard the result if the machine is restored
	// during the call.
	//
	// Errors: [ErrHistory], [ErrWrongSecret], [ErrNoStore], [ErrInvalidRequest], [ErrMisconfigured]
	// for a server whose place is unknown, and for a store without a secret unless r.Reason is
	// [Rekey].
	Begin(ctx context.Context, r BeginRequest) (Description, error)
}

// Request asks for the time from Now to Now plus TTL: for a block, or for more time of a block
// that is held.
type Request struct {
	// Store is the ID of the history in which to lease. A Renew ignores it: the grant has it.
	Store string
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
	// Store is the ID of the history to which the block belongs.
	Store string `json:"-"`
	// Start is the zero Time before the first grant. End is the first second that was never
	// granted: it only grows.
	randflake.Lease
	// Acquired is the nonce of the Acquire that granted the block: it identifies the grant, and
	// stays when the grant is renewed. It is "" if the block was never granted.
	Acquired string
	// Nonce is the nonce of the last write. The client that acquired or renewed the block knows it.
	// It is "" if the block was never granted.
	Nonce string
	// Version increases with every write; a block that was never written has version 0.
	Version uint64
	// Owner tells operators who has the block; see [Request.Owner].
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
