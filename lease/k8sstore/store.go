package k8sstore

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

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
		return New(newClient(""), server, cmp.Or(u.Host, "default"), name)
	}
	o, err := inPod(accountDir)
	if err != nil {
		return nil, invalid(err)
	}
	o.namespace, o.name = cmp.Or(u.Host, o.namespace), name
	return o.store()
}

func invalid(err error) error {
	return driver.Invalid("k8sstore: %w", err)
}

// New returns a store in a namespace of the API server at a URL, with a client that authenticates
// by itself; with client-go it is that of rest.HTTPClientFor, and the URL is the Host of the same
// rest.Config. The names of the store's objects begin with name, at most 63 letters a to z, digits
// and hyphens; "" is traceflake. New sends no request. Errors of invalid arguments wrap
// [lease.ErrInvalidRequest].
func New(client *http.Client, server, namespace, name string) (stores.Store, error) {
	u, err := driver.ParseServer(server)
	if err == nil && client == nil {
		err = errors.New("no client")
	}
	if err != nil {
		return nil, invalid(err)
	}
	return (&objects{client: client, server: u.String(), namespace: namespace, name: name}).store()
}

// good is the form of a namespace and a store's name, each with a slash.
var good = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/){2}$`)

func (o *objects) store() (stores.Store, error) {
	o.name = cmp.Or(o.name, defaultName)
	if !good.MatchString(o.namespace + "/" + o.name + "/") {
		return nil, invalid(fmt.Errorf("the namespace %q, the name %q: want at most 63 letters "+
			"a to z, digits and hyphens", o.namespace, o.name))
	}
	o.client = driver.WithoutRedirects(o.client)
	return stores.New(o, driver.Layout{Name: "k8sstore", BlocksPerPage: blocksPerPage})
}
