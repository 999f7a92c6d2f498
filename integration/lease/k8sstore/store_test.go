//go:build unix

package k8sstore_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/faults"
	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/driver"
	"github.com/traceflake/traceflake/lease/k8sstore"
	"github.com/traceflake/traceflake/lease/leasetest"
)

func TestMain(m *testing.M) {
	leasetest.Worker()
	kubernetes.Main(m)
}

// namespace has the stores of the tests, each with a name of its own.
const namespace = "fleet"

var (
	names atomic.Int64
	setUp sync.Once
)

func newName() string { return fmt.Sprintf("store-%d", names.Add(1)) }

// server returns the server of all tests that leave it alone, with a namespace.
func server(tb testing.TB) *kubernetes.Server {
	tb.Helper()
	s := kubernetes.Shared(tb)
	setUp.Do(func() { apply(tb, s, namespaceObject) })
	return s
}

const namespaceObject = "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n"

func apply(tb testing.TB, s *kubernetes.Server, objects string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Apply(ctx, objects); err != nil {
		tb.Fatal(err)
	}
}

// harness makes each storage a name of its own.
func harness(client *http.Client, server string) leasetest.Harness {
	return leasetest.Harness{KnowsTime: true, New: func(testing.TB) leasetest.Storage {
		return storage(client, server, namespace, newName())
	}}
}

func storage(client *http.Client, server, namespace, name string) leasetest.Storage {
	return leasetest.Storage{Open: func() (driver.Store, error) {
		return k8sstore.New(client, server, namespace, name)
	}}
}

func TestConformance(t *testing.T) {
	s := server(t)
	leasetest.Run(t, harness(s.Client(kubernetes.Admin), s.URL()))
}

// Processes reach the API server through a bad network. The server is killed.
func TestProcesses(t *testing.T) {
	s := kubernetes.ForTest(t)
	apply(t, s, namespaceObject)
	proxy := faults.HTTP(t, s.Client(kubernetes.Admin).Transport, s.URL())
	processes.Run(t, "k8s://"+namespace+"/processes?server="+proxy.Endpoint(), processes.Outage(s))
	proxy.Check(t)
}

var wantError = calls.WantError("k8sstore: ", "secret-of-")

// The four verbs are enough, and each is needed: without it the error contains which. So it does if the
// user or the namespace does not exist.
func TestRights(t *testing.T) {
	s := server(t)
	try := func(user, namespace string) error {
		return calls.Everything(t.Context(), storage(s.Client(user), s.URL(), namespace, newName()).Open, nil)
	}
	verbs := []string{"get", "list", "create", "update"}
	for _, missing := range verbs {
		in := "without-" + missing
		grantRights(t, s, in, slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == missing }))
		wantError(t, in, try(kubernetes.Limited, in), lease.ErrMisconfigured,
			fmt.Sprintf("%s leases.coordination.k8s.io in namespace %q", missing, in), "Role needs get, list, create and update")
	}
	grantRights(t, s, "with-all", verbs)
	if err := try(kubernetes.Limited, "with-all"); err != nil {
		t.Errorf("with all four verbs: %v", err)
	}
	wantError(t, "no role", try(kubernetes.Limited, namespace), lease.ErrMisconfigured, "get, list, create and update")
	wantError(t, "no namespace", try(kubernetes.Admin, "nowhere"), lease.ErrMisconfigured, `there is no namespace "nowhere": create it`)
	wantError(t, "no user", try("nobody", namespace), lease.ErrMisconfigured, "credentials")
}

// grantRights creates a namespace in which the limited user has rights to Leases.
func grantRights(t *testing.T, s *kubernetes.Server, namespace string, verbs []string) {
	t.Helper()
	apply(t, s, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leases, namespace: %[1]s}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [%[2]s]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leases, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leases}
subjects:
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: %[3]s}
`, namespace, strings.Join(verbs, ", "), kubernetes.Limited))
	// The server takes up a role after a moment.
	body := fmt.Sprintf(`{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": %q, "resourceAttributes":
		{"verb": %q, "group": "coordination.k8s.io", "resource": "leases", "namespace": %q}}}`, kubernetes.Limited, verbs[0], namespace)
	for range 200 {
		answer, err := s.Do(t.Context(), http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(answer), `"allowed":true`) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s may not %s in %s after 10 s", kubernetes.Limited, verbs[0], namespace)
}

// Those of a process and of a fleet are in docs/operating.md.
func TestRequests(t *testing.T) {
	s := server(t)
	c := &calls.Transport{RoundTripper: s.Client(kubernetes.Admin).Transport}
	calls.Costs(t, storage(&http.Client{Transport: c}, s.URL(), namespace, newName()).Open, &c.N, map[string]int64{
		"start": 1, "acquire": 2, "acquire again": 1, "renew": 2, "get": 1, "release": 2, "list": 1,
	})
}
