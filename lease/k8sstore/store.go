package k8sstore

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/internal/pages"
)

// DefaultName is the name of a store unless [WithName] or the URL gives another.
const DefaultName = "traceflake"

// blocksPerPage fixes how many blocks of a new store share an object: few
// processes write the same one, and there are few to read when blocks run out.
const blocksPerPage = 16

// Store keeps leases in the Lease objects of one namespace. It is safe for
// concurrent use.
type Store struct {
	pages *pages.Store
}

var _ interface {
	lease.Store
	lease.Admin
} = (*Store)(nil)

// settings are what options set.
type settings struct {
	name  string
	nodes driver.NodeRange // zero fields are taken from the store
}

// Option configures a [Store].
type Option interface{ apply(*settings) }

type optionFunc func(*settings)

func (f optionFunc) apply(s *settings) { f(s) }

// WithName sets the store's name, with which the names of its objects begin: at
// most 63 letters a to z, digits and hyphens. Fleets with different secrets need
// different names, or different namespaces.
func WithName(name string) Option {
	return optionFunc(func(s *settings) { s.name = name })
}

// WithBlockSize sets how many nodes a block has, a power of two from 1 to
// 131072. It is fixed by the first grant. The default is the store's block
// size, and [driver.DefaultBlockSize] for a new one.
func WithBlockSize(nodes int) Option {
	return optionFunc(func(s *settings) { s.nodes.BlockSize = driver.Count(nodes, 1) })
}

// WithNodes limits this client to nodes [first, first+n); the default is every
// node. Both are multiples of the block size. Clients of one store may differ;
// fleets that share a secret but no store must not overlap.
func WithNodes(first, n int) Option {
	return optionFunc(func(s *settings) { s.nodes.First, s.nodes.Nodes = driver.Count(first, 0), driver.Count(n, 1) })
}

// New returns a store in a namespace of the API server at a URL, for a program
// that has a client already, which authenticates by itself; with client-go it is
// that of rest.HTTPClientFor, and the URL is the Host of the same rest.Config. It
// makes no request. Errors of invalid arguments wrap [lease.ErrInvalidRequest].
func New(client *http.Client, server, namespace string, opts ...Option) (*Store, error) {
	u, err := url.Parse(server)
	switch {
	case client == nil:
		return nil, fmt.Errorf("k8sstore: %w: no client", lease.ErrInvalidRequest)
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("k8sstore: %w: the server is no URL, want https://host:port", lease.ErrInvalidRequest)
	}
	own := *client
	own.CheckRedirect = noRedirect
	c := connection{client: &own, server: strings.TrimRight(server, "/")}
	return newStore(func(context.Context, bool) (connection, error) { return c, nil }, namespace, opts...)
}

// label is the form of the names of namespaces and stores.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func newStore(connect func(context.Context, bool) (connection, error), namespace string, opts ...Option) (*Store, error) {
	s := settings{name: DefaultName}
	for _, opt := range opts {
		opt.apply(&s)
	}
	for what, name := range map[string]string{"namespace": namespace, "name": s.name} {
		if !label.MatchString(name) {
			return nil, fmt.Errorf("k8sstore: %w: the %s is %q, want at most 63 letters a to z, digits and hyphens",
				lease.ErrInvalidRequest, what, name)
		}
	}
	if err := s.nodes.CheckAsked(); err != nil {
		return nil, fmt.Errorf("k8sstore: %w", err)
	}
	o := &objects{api: api{connect}, namespace: namespace, name: s.name}
	return &Store{pages.New(o, pages.Layout{Name: "k8sstore", BlocksPerPage: blocksPerPage}, s.nodes)}, nil
}

// Acquire implements [lease.Store].
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	return s.pages.Acquire(ctx, r)
}

// Renew implements [lease.Store].
func (s *Store) Renew(ctx context.Context, g lease.Grant, r lease.Request) (lease.Grant, error) {
	return s.pages.Renew(ctx, g, r)
}

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, g lease.Grant, next string, unused time.Time) error {
	return s.pages.Release(ctx, g, next, unused)
}

// Get implements [lease.Store].
func (s *Store) Get(ctx context.Context, node uint32) (lease.Grant, error) {
	return s.pages.Get(ctx, node)
}

// List implements [lease.Admin]. It reads every object, one request each.
func (s *Store) List(ctx context.Context) ([]lease.Block, error) {
	return s.pages.List(ctx)
}

// Raise implements [lease.Admin]. It reads and writes every object of the store's
// nodes, and creates those that are missing.
func (s *Store) Raise(ctx context.Context, until time.Time) error {
	return s.pages.Raise(ctx, until)
}

// Time implements [lease.Admin]. It is one request.
func (s *Store) Time(ctx context.Context) (time.Time, error) { return s.pages.Time(ctx) }
