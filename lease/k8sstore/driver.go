package k8sstore

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/traceflake/traceflake/lease/driver"
)

func init() { driver.Register("k8s", openURL) }

const urlForm = "k8s://namespace/name, or k8s:///name for the pod's namespace; outside of pods with ?server=URL"

// openURL is the [driver.Opener] of k8s.
func openURL(text string) (driver.Store, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.User != nil || u.Port() != "" || u.Fragment != "" || !strings.HasPrefix(text, "k8s://") {
		return nil, errors.New("k8sstore: not the URL of a store, want " + urlForm)
	}
	query := u.Query()
	server := query.Get("server")
	query.Del("server")
	for name := range query {
		return nil, fmt.Errorf("k8sstore: unknown parameter %q of the URL, want server", name)
	}
	name := strings.Trim(u.Path, "/")
	if server != "" {
		return New(newClient(nil), server, cmp.Or(u.Host, "default"), name)
	}
	c, namespace, err := inPod(accountDir)
	if err != nil {
		return nil, fmt.Errorf("k8sstore: %w", err)
	}
	return newStore(c, cmp.Or(u.Host, namespace), name)
}
