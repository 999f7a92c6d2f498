package stores

import (
	"context"
	"errors"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/engine"
	"github.com/traceflake/traceflake/randflake"
)

// Store is a store as operators and processes use it.
type Store interface {
	lease.Store

	// Create creates the store that d describes, with all its objects, and begins its first
	// history, with a secret, or without one if that is nil: then the store is Keyless. It returns
	// the description. Fields that d leaves empty get defaults: every node, blocks of eight nodes
	// and [lease.DefaultTTL]; Create sets the History and the time itself. Before it writes, it
	// tests whether the server is fit for a store. A creation that was interrupted is begun anew.
	//
	// Errors: [lease.ErrExists], with the description of the store that exists;
	// [lease.ErrInvalidRequest].
	Create(ctx context.Context, d lease.Description,
		secret *randflake.Codec) (lease.Description, error)
	// List returns all blocks that have been written, in node order. It writes nothing.
	List(ctx context.Context) ([]lease.Grant, error)

	// Time returns the time on the store's clock, with which it compares the clocks of its
	// clients, or the zero Time if it has none. It writes nothing.
	Time(ctx context.Context) (time.Time, error)

	// CheckRights returns nil if a process with this client may lease blocks and begin a history.
	// It writes nothing. Errors: [driver.ErrRightsUnknown], [lease.ErrMisconfigured].
	CheckRights(ctx context.Context) error

	// Close ends the calls in flight, which return [lease.ErrClosed], as later ones do, and
	// releases the store's resources. It waits for half a second at most, and then returns an
	// error while they are still being released. Further calls return the same result. Close the
	// Keeper first.
	Close() error
}

// Ensure creates a store for the processes of one host unless it exists, for every node and leases
// of any TTL. Several processes may do so at once.
func Ensure(ctx context.Context, s Store, secret *randflake.Codec) error {
	d, err := s.Describe(ctx)
	switch {
	case errors.Is(err, lease.ErrNoStore):
	case d.ID != "": // in any state
		return nil
	default:
		return err
	}
	d, err = s.Create(ctx, lease.Description{LongestTTL: lease.MaxTTL}, secret)
	if errors.Is(err, lease.ErrExists) && d.ID != "" {
		return nil
	}
	return err
}

// New returns a store that keeps leases in objects. It sends no request. If BlocksPerPage is out of
// range, the error wraps [lease.ErrInvalidRequest].
func New(o driver.Objects, layout driver.Layout) (Store, error) {
	s, err := engine.New(o, layout)
	if err != nil {
		return nil, err // not a Store with a nil pointer
	}
	return s, nil
}
