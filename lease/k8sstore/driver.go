package k8sstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/traceflake/traceflake/lease/driver"
)

func init() { driver.Register("k8s", openURL) }

const urlForm = "k8s://namespace/name, or k8s:///name for the namespace of this pod or context"

// opened is a Store with its own client.
type opened struct {
	*Store
	session *session
}

// Close implements [driver.Store].
func (o *opened) Close() error {
	o.session.close()
	return nil
}

// openURL is the [driver.Opener] of k8s.
func openURL(_ context.Context, text string, nodes driver.NodeRange) (driver.Store, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.User != nil || u.Port() != "" || u.Fragment != "" || !strings.HasPrefix(text, "k8s://") {
		return nil, errors.New("k8sstore: not the address of a store, want " + urlForm)
	}
	query := u.Query()
	read := source(query.Get("kubeconfig"), query.Get("context"))
	query.Del("kubeconfig")
	query.Del("context")
	for name := range query {
		return nil, fmt.Errorf("k8sstore: unknown parameter %q of the address, want kubeconfig or context", name)
	}
	session, err := newSession(read)
	if err != nil {
		return nil, fmt.Errorf("k8sstore: %w", err)
	}
	namespace := u.Host
	if namespace == "" {
		namespace = session.access.namespace
	}
	opts := []Option{optionFunc(func(s *settings) { s.nodes = nodes })}
	if name := strings.Trim(u.Path, "/"); name != "" {
		opts = append(opts, WithName(name))
	}
	s, err := newStore(session.connect, namespace, opts...)
	if err != nil {
		return nil, err
	}
	return &opened{s, session}, nil
}

// source chooses where it is said how to reach the server: the file of the URL,
// those of KUBECONFIG, the pod's service account, the user's kubeconfig. The
// context that is the current one at first stays in use.
func source(file, context string) func() (access, error) {
	files := func(list ...string) func() (access, error) {
		return func() (access, error) {
			a, err := fromKubeconfig(list, context)
			if err == nil {
				context = a.context
			}
			if a.namespace == "" {
				a.namespace = "default"
			}
			return a, err
		}
	}
	if file != "" {
		return files(file)
	}
	if list := os.Getenv("KUBECONFIG"); list != "" {
		return files(filepath.SplitList(list)...)
	}
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" && context == "" {
		return func() (access, error) { return inCluster(accountDir) }
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return func() (access, error) { return access{}, fmt.Errorf("no kubeconfig: %w", err) }
	}
	return files(filepath.Join(home, ".kube", "config"))
}
