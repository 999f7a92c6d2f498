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
	"time"

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

// Options is what a program that opens a store by URL says of its use.
type Options struct {
	// Nodes limits the store to some nodes; the zero NodeRange is the store's own.
	Nodes NodeRange
	// LongestTTL is the longest TTL that will be requested, or 0 if that is
	// [lease.DefaultTTL] at most.
	LongestTTL time.Duration
	// Secret is with which secret IDs of the store's leases are made.
	Secret Secret
	// Existing is set if a store that does not exist must not be created.
	Existing bool
}

// Secret says with which secret IDs of a store's leases are made. It matters to a
// [CodecStore].
type Secret int

const (
	// AnySecret is the store's own, or another one.
	AnySecret Secret = iota
	// OwnSecret is that of [CodecStore].
	OwnSecret
	// SharedSecret is one that does not end with the store: IDs of other stores,
	// and of the store before this one, are made with it too.
	SharedSecret
)

// Option sets one of the [Options], for [Open].
type Option func(*Options)

// WithLongestTTL sets [Options.LongestTTL].
func WithLongestTTL(ttl time.Duration) Option { return func(o *Options) { o.LongestTTL = ttl } }

// WithSecret sets [Options.Secret].
func WithSecret(s Secret) Option { return func(o *Options) { o.Secret = s } }

// Existing sets [Options.Existing].
func Existing() Option { return func(o *Options) { o.Existing = true } }

// Opener opens the store at a URL with the scheme for which it is registered. It
// must not wait for a server: one that is unreachable now may come back. Errors
// never contain the URL, which may contain a password.
type Opener func(ctx context.Context, url string, o Options) (Store, error)

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

// Schemes returns how the URLs of the registered stores begin, sorted: "bolt:", "postgres://".
func Schemes() []string {
	openers.RLock()
	defer openers.RUnlock()
	schemes := slices.Sorted(maps.Keys(openers.byScheme))
	for i, scheme := range schemes {
		schemes[i] += "://"
		if scheme == "bolt" {
			schemes[i] = "bolt:" // and a path
		}
	}
	return schemes
}

// Open opens the store at url, such as "bolt:PATH" or "postgres://…",
// depending on the imported packages. The zero NodeRange stands for that of the
// store. Errors: [ErrUnknownScheme] and those of the store's package.
func Open(ctx context.Context, url string, nodes NodeRange, opts ...Option) (Store, error) {
	scheme, _, ok := strings.Cut(url, ":")
	openers.RLock()
	open := openers.byScheme[scheme]
	openers.RUnlock()
	if !ok || open == nil {
		imported := strings.Join(Schemes(), ", ")
		if name := packages[scheme]; ok && name != "" {
			return nil, fmt.Errorf("%w: %s: import _ %q in the program, which has %s",
				ErrUnknownScheme, scheme, "github.com/traceflake/traceflake/lease/"+name, imported)
		}
		// The text may be a path or a password, so it is not repeated.
		return nil, fmt.Errorf("%w; its URL must begin with one of: %s", ErrUnknownScheme, imported)
	}
	o := Options{Nodes: nodes}
	for _, opt := range opts {
		opt(&o)
	}
	return open(ctx, url, o)
}
