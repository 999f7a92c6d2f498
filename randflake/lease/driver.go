package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// ErrUnknownScheme comes from [OpenStore] when no driver is registered for the
// URL's scheme. Import the store's package, as one does with database/sql.
var ErrUnknownScheme = errors.New("lease: unknown kind of store")

// OpenedStore is a store that [OpenStore] opened. Close ends what was opened
// with it; close the Keeper first.
type OpenedStore interface {
	Store
	Admin
	io.Closer
}

// A Driver opens the store that a URL names, whose scheme it is registered
// for. With a zero NodeRange it uses the store's own, or its default. It must
// not wait for a server: one that is away now may come back. Errors never hold
// the URL, which may hold a password.
type Driver func(ctx context.Context, url string, nodes NodeRange) (OpenedStore, error)

var drivers struct {
	sync.RWMutex
	byScheme map[string]Driver
}

// Register makes a driver known under a URL scheme, lower case and without
// the colon. Packages of stores call it when they are imported. It panics when
// the scheme is taken.
func Register(scheme string, d Driver) {
	drivers.Lock()
	defer drivers.Unlock()
	if _, taken := drivers.byScheme[scheme]; taken || d == nil {
		panic("lease: Register of " + scheme + ": the scheme is taken, or the driver nil")
	}
	if drivers.byScheme == nil {
		drivers.byScheme = make(map[string]Driver)
	}
	drivers.byScheme[scheme] = d
}

// Schemes returns the schemes of the drivers that are registered, sorted.
func Schemes() []string {
	drivers.RLock()
	defer drivers.RUnlock()
	var schemes []string
	for scheme := range drivers.byScheme {
		schemes = append(schemes, scheme)
	}
	slices.Sort(schemes)
	return schemes
}

// OpenStore opens the store that url names: "bolt:PATH", "postgres://…",
// "etcd://…", depending on what is imported. Errors: [ErrUnknownScheme] and
// those of the driver.
func OpenStore(ctx context.Context, url string, nodes NodeRange) (OpenedStore, error) {
	scheme, _, ok := strings.Cut(url, ":")
	drivers.RLock()
	open := drivers.byScheme[scheme]
	drivers.RUnlock()
	if !ok || open == nil {
		// The text may be a path or a password, so it is not repeated.
		return nil, fmt.Errorf("%w; what its address may begin with: %s", ErrUnknownScheme, strings.Join(Schemes(), ", "))
	}
	return open(ctx, url, nodes)
}
