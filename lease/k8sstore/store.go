package k8sstore

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/driver/pages"
)

// DefaultName is the name of a store unless [WithName] or the URL gives another.
const DefaultName = "traceflake"

// blocksPerPage fixes how many blocks of a new store share an object: few
// processes write the same one, and there are few to read when blocks run out.
const blocksPerPage = 128

// Option configures a store.
type Option func(*objects)

// WithName sets the store's name, with which the names of its objects begin: at
// most 63 letters a to z, digits and hyphens. Fleets with different secrets need
// different names, or different namespaces.
func WithName(name string) Option { return func(o *objects) { o.name = name } }

// New returns a store in a namespace of the API server at a URL, with a client
// that authenticates by itself; with client-go it is that of rest.HTTPClientFor,
// and the URL is the Host of the same rest.Config. It makes no request.
// Errors of invalid arguments wrap [lease.ErrInvalidRequest].
func New(client *http.Client, server, namespace string, opts ...Option) (driver.Store, error) {
	u, err := url.Parse(server)
	switch {
	case client == nil:
		return nil, fmt.Errorf("k8sstore: %w: no client", lease.ErrInvalidRequest)
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("k8sstore: %w: the server is no URL, want https://host:port", lease.ErrInvalidRequest)
	}
	own := *client
	own.CheckRedirect = noRedirect
	fixed := connection{client: &own, server: strings.TrimRight(server, "/")}
	return newStore(func() connection { return fixed }, namespace, opts)
}

// label is the form of the names of namespaces and stores.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func newStore(connect func() connection, namespace string, opts []Option) (driver.Store, error) {
	o := &objects{connect: connect, namespace: namespace, name: DefaultName}
	for _, opt := range opts {
		if opt != nil {
			opt(o)
		}
	}
	for what, name := range map[string]string{"namespace": o.namespace, "name": o.name} {
		if !label.MatchString(name) {
			return nil, fmt.Errorf("k8sstore: %w: the %s is %q, want at most 63 letters a to z, digits and hyphens",
				lease.ErrInvalidRequest, what, name)
		}
	}
	// API servers have several kinds of storage below them.
	layout := pages.Layout{Name: "k8sstore", BlocksPerPage: blocksPerPage, Probe: true}
	return pages.New(o, layout)
}
