package k8sstore

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/stores"
)

// defaultName is the name of a store unless [New] or the URL sets another name.
const defaultName = "traceflake"

// blocksPerPage counts the blocks of a new store that share an object: few processes write the same
// object, and only few objects are read when blocks run out.
const blocksPerPage = 128

func init() { stores.Register("k8s", openURL) }

const urlForm = "k8s://namespace/name, or k8s:///name for the pod's namespace; outside of pods " +
	"with ?server=URL"

// openURL opens the store at a k8s:// URL.
func openURL(text string) (stores.Store, error) {
	u, err := driver.ParseURL("k8sstore", text, urlForm, "server")
	if err != nil {
		return nil, err
	}
	if u.User != nil || u.Port() != "" {
		return nil, errors.New("k8sstore: want " + urlForm)
	}
	server, name := u.Query().Get("server"), strings.Trim(u.Path, "/")
	if server != "" {
		return New(newClient(nil), server, cmp.Or(u.Host, "default"), name)
	}
	o, err := inPod(accountDir)
	if err != nil {
		return nil, fmt.Errorf("k8sstore: %w: %w", lease.ErrInvalidRequest, err)
	}
	o.namespace, o.name = cmp.Or(u.Host, o.namespace), name
	return o.store()
}

// New returns a store in a namespace of the API server at a URL, with a client that authenticates
// by itself; with client-go it is that of rest.HTTPClientFor, and the URL is the Host of the same
// rest.Config. The names of the store's objects begin with name, at most 63 letters a to z, digits
// and hyphens; "" is traceflake. New sends no request. Errors of invalid arguments wrap
// [lease.ErrInvalidRequest].
func New(client *http.Client, server, namespace, name string) (stores.Store, error) {
	u, err := url.Parse(server)
	switch {
	case client == nil:
		return nil, fmt.Errorf("k8sstore: %w: no client", lease.ErrInvalidRequest)
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("k8sstore: %w: the server is not a URL, want https://host:port",
			lease.ErrInvalidRequest)
	}
	return (&objects{client: withoutRedirects(client), server: strings.TrimRight(server, "/"),
		namespace: namespace, name: name}).store()
}

// label is the form of the names of namespaces and stores.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (o *objects) store() (stores.Store, error) {
	o.name = cmp.Or(o.name, defaultName)
	for _, part := range []struct{ what, name string }{
		{"namespace", o.namespace}, {"name", o.name},
	} {
		if !label.MatchString(part.name) {
			return nil, fmt.Errorf("k8sstore: %w: the %s is %q, want at most 63 letters a to z, "+
				"digits and hyphens", lease.ErrInvalidRequest, part.what, part.name)
		}
	}
	// API servers have several kinds of storage below them.
	return stores.New(o, driver.Layout{Name: "k8sstore", BlocksPerPage: blocksPerPage, Probe: true})
}
