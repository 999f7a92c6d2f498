package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/randflake"
)

// ErrUnknownScheme is returned by [Open] if no store is registered for the
// URL's scheme. Import the store's package, as with database/sql.
var ErrUnknownScheme = errors.New("lease: unknown kind of store")

// packages maps the schemes of this project to the packages to import.
var packages = map[string]string{
	"bolt":       "boltstore",
	"postgres":   "pgstore",
	"postgresql": "pgstore",
	"etcd":       "etcdstore",
	"etcds":      "etcdstore",
	"k8s":        "k8sstore",
	"s3":         "s3store",
}

// Store is a store that [Open] opened. Close releases its resources; close the
// Keeper first.
type Store interface {
	lease.Store
	lease.Admin
	io.Closer
}

// CodecStore is a store that keeps its own secret, as the store of a single
// host can. IDs of its leases may be made with it instead of a fleet's secret.
type CodecStore interface {
	lease.Store
	// Codec returns the codec of the store's own secret.
	Codec() *randflake.Codec
}

// Opener opens the store at a URL with the scheme for which it is registered.
// With a zero NodeRange it uses that of the store, or the store's default. It
// must not wait for a server: one that is unreachable now may come back. Errors
// never contain the URL, which may contain a password.
type Opener func(ctx context.Context, url string, nodes NodeRange) (Store, error)

var openers struct {
	sync.RWMutex
	byScheme map[string]Opener
}

// Register registers a store for a URL scheme, in lower case and without the
// colon. Packages of stores call it when they are imported. It panics if the
// scheme is taken.
func Register(scheme string, open Opener) {
	openers.Lock()
	defer openers.Unlock()
	if _, taken := openers.byScheme[scheme]; taken || open == nil {
		panic("driver: Register of " + scheme + ": the scheme is taken, or the opener nil")
	}
	if openers.byScheme == nil {
		openers.byScheme = make(map[string]Opener)
	}
	openers.byScheme[scheme] = open
}

// schemes returns the schemes that are registered, sorted.
func schemes() []string {
	openers.RLock()
	defer openers.RUnlock()
	return slices.Sorted(maps.Keys(openers.byScheme))
}

// Open opens the store at url, such as "bolt:PATH" or "postgres://…",
// depending on the imported packages. The zero NodeRange stands for that of the
// store. Errors: [ErrUnknownScheme] and those of the store's package.
func Open(ctx context.Context, url string, nodes NodeRange) (Store, error) {
	scheme, _, ok := strings.Cut(url, ":")
	openers.RLock()
	open := openers.byScheme[scheme]
	openers.RUnlock()
	if !ok || open == nil {
		imported := strings.Join(schemes(), ", ")
		if name := packages[scheme]; ok && name != "" {
			return nil, fmt.Errorf("%w: %s: import _ %q in the program, which has %s",
				ErrUnknownScheme, scheme, "github.com/traceflake/traceflake/lease/"+name, imported)
		}
		// The text may be a path or a password, so it is not repeated.
		return nil, fmt.Errorf("%w; its URL must begin with one of: %s", ErrUnknownScheme, imported)
	}
	return open(ctx, url, nodes)
}
