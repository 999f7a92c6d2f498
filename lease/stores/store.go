package stores

import (
	"context"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/randflake"
)

// Store is a store as operators and processes use it. Each call of an operator can be repeated
// without harm.
type Store interface {
	lease.Store

	// Create creates the store that d describes, with all its objects: no later call creates
	// anything. Fields that d leaves empty are set as by [NewDescription]. If a store with d's ID
	// exists, Create completes it. Before it writes, it tests whether the server is fit for a
	// store.
	//
	// Errors: [lease.ErrExists] for a store with another ID, [lease.ErrInvalidRequest].
	Create(ctx context.Context, d lease.Description) error
	// AddSecret registers another secret, by its [Fingerprint], so that leases are used with it.
	AddSecret(ctx context.Context, fingerprint string) error
	// List returns all blocks that have been written, in node order.
	List(ctx context.Context) ([]lease.Grant, error)
	// Raise moves the end of every block to at least until, even of those never granted, and
	// clears every nonce: nothing before until is granted any more, and no earlier grant can be
	// extended. It is for a store that was restored from a backup and may have forgotten grants:
	// until is then the time on the store's clock, plus its longest TTL, plus three minutes for
	// clocks that differ.
	//
	// The store records until, and a call before that time raises to the recorded time again: a
	// raise that is repeated, or run by two operators at once, is one raise. It returns the time to
	// which the store was raised. If it fails halfway, call it again.
	//
	// Errors: [randflake.ErrBeforeEpoch], [randflake.ErrEndOfLife].
	Raise(ctx context.Context, until time.Time) (time.Time, error)
	// MovedHere raises a store that was created elsewhere, as Raise does, and records its new
	// place: before that every call returns [lease.ErrMoved]. The original must be gone for good.
	MovedHere(ctx context.Context, until time.Time) (time.Time, error)

	// Time returns the time on the store's clock, with which it compares the clocks of its
	// clients, or the zero Time if it has none. It writes nothing.
	Time(ctx context.Context) (time.Time, error)

	// CheckRights returns nil if a process with this client may lease blocks. It writes nothing.
	// Errors: [driver.ErrRightsUnknown], [lease.ErrMisconfigured].
	CheckRights(ctx context.Context) error

	// Close ends the calls in flight, which return [lease.ErrClosed], as later ones do, and
	// releases the store's resources. It waits for half a second at most, and then returns an
	// error while they are still being released. Further calls return the same result. Close the
	// Keeper first.
	Close() error
}

// Embedded is a store that keeps its own secret, such as the store of a single host.
// A process creates it if it is missing: no other store can have its secret.
type Embedded interface {
	Store
	// Codec returns the codec of the store's own secret. Errors: [lease.ErrNoStore].
	Codec(ctx context.Context) (*randflake.Codec, error)
	// Ensure returns it, too. If the store is missing, it first creates the store, for every node
	// and leases of any TTL, or completes it. Several processes may do so at once.
	Ensure(ctx context.Context) (*randflake.Codec, error)
	// OnRestore must be called after this process was restored from a snapshot, before
	// [lease.Keeper.OnRestore]. From then on the store grants nothing, since another machine may
	// have a copy of it.
	OnRestore()
}

// New returns a store that keeps leases in objects. It sends no request. If BlocksPerPage is out of
// range, the error wraps [lease.ErrInvalidRequest].
func New(o driver.Objects, layout driver.Layout) (Store, error) { return engine.New(o, layout) }

// NewDescription returns d with defaults for what it lacks: a new ID, every node, blocks of eight
// nodes and [lease.DefaultTTL]. It truncates Created to a whole second, and rounds
// Raised up. The error wraps [lease.ErrInvalidRequest].
func NewDescription(d lease.Description) (lease.Description, error) {
	return engine.NewDescription(d)
}
