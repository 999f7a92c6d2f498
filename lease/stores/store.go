package stores

import (
	"cmp"
	"context"
	"errors"
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
	// AddSecret registers another secret of the store with an ID, by its fingerprint, so that
	// leases are used with it. Errors: [lease.ErrReplaced] if the store has another ID.
	AddSecret(ctx context.Context, id, fingerprint string) error
	// RemoveSecret ends the registration of a secret of the store with an ID: from then on no lease
	// is acquired or renewed with it, and current ones are used to their ends. If it fails halfway,
	// some are renewed until it is called again. Errors: [lease.ErrInvalidRequest] if the secret is
	// not registered or is the only one, [lease.ErrReplaced].
	RemoveSecret(ctx context.Context, id, fingerprint string) error
	// List returns all blocks that have been written, in node order.
	List(ctx context.Context) ([]lease.Grant, error)
	// Replace begins a new history of the store with the ID old, after it was restored from a
	// backup or moved: the store gets another ID, a new secret, by its fingerprint, and its present
	// place. No block is granted. No request of the earlier history changes anything any more;
	// leases granted in it are used to their ends.
	//
	// Nothing may have reached the store between the restore and the return of Replace. If Replace
	// fails halfway, the store grants nothing until it is called again with the same arguments. A
	// store that keeps its own secret generates the ID and the secret itself, in each call.
	//
	// Errors: [lease.ErrReplaced] if the store has neither ID, [lease.ErrInvalidRequest].
	Replace(ctx context.Context, old, id, fingerprint string) error

	// KeepsSecret reports whether the store keeps its own secret, as that of a single host does. A
	// process creates such a store if it is missing; see [EnsureSecrets].
	KeepsSecret() bool
	// Secrets returns the secrets that the store keeps: the first is in use. Errors:
	// [lease.ErrNoStore], [lease.ErrInvalidRequest] if it does not keep its own.
	Secrets(ctx context.Context) (*randflake.Keyring, error)
	// OnRestore must be called after this process was restored from a snapshot, before
	// [lease.Keeper.OnRestore]. From then on a store that keeps its own secret grants nothing,
	// since another machine may have a copy of it.
	OnRestore()

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

// EnsureSecrets returns the secrets of a store that keeps its own. If the store is missing, it is
// first created, for every node and leases of any TTL, or completed: no other store can have its
// secret. Several processes may do so at once.
func EnsureSecrets(ctx context.Context, s Store) (*randflake.Keyring, error) {
	var created error
	for tries := 0; ; tries++ {
		k, err := s.Secrets(ctx)
		switch {
		case !errors.Is(err, lease.ErrNoStore):
			return k, err
		case tries == 3:
			return nil, cmp.Or(created, err)
		}
		d, _ := s.Describe(ctx)
		if d.ID == "" { // otherwise another process has begun
			d = lease.Description{Created: time.Now(), LongestTTL: lease.MaxTTL}
		}
		if created = s.Create(ctx, d); created != nil && !errors.Is(created, lease.ErrExists) {
			return nil, created
		}
	}
}

// OwnSecret returns the first of [EnsureSecrets], for [lease.Start].
func OwnSecret(s Store) lease.Secret {
	return func(ctx context.Context) (*randflake.Codec, error) {
		k, err := EnsureSecrets(ctx, s)
		return k.Codec(), err
	}
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

// NewDescription returns d with defaults for what it lacks: a new ID, every node, blocks of eight
// nodes and [lease.DefaultTTL]. It truncates Created to a whole second. The error
// wraps [lease.ErrInvalidRequest].
func NewDescription(d lease.Description) (lease.Description, error) {
	return engine.NewDescription(d)
}
