//go:build unix

package k8sstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/traceflake/traceflake/integration/lease/processes"
	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
	"github.com/traceflake/traceflake/internal/calls"
	"github.com/traceflake/traceflake/lease"
	"github.com/traceflake/traceflake/lease/stores"
)

// The API server is killed.
func TestProcesses(t *testing.T) {
	s := child.ForTest(t, kubernetes.Start)
	processes.Run(t, processes.Outage(s),
		"k8s://default/processes?server="+s.Proxy(kubernetes.Token(kubernetes.Admin)))
}

var wantError = calls.WantError("k8sstore: ", "secret-of-")

// The three verbs are enough, and each is needed: the error contains a missing verb, user or
// namespace.
func TestRights(t *testing.T) {
	s := child.ForTest(t, kubernetes.Start)
	try := func(user, namespace string) error {
		at := "k8s://" + namespace + "/" + strings.ToLower(rand.Text()) + "?server=" +
			s.Proxy(kubernetes.Token(user))
		return calls.Everything(t.Context(),
			func() (stores.Store, error) { return stores.Open(at) })
	}
	verbs := []string{"get", "create", "update"}
	for _, missing := range verbs {
		in := "without-" + missing
		grantRights(t, s, in,
			slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == missing }))
		wantError(t, in, try(kubernetes.Limited, in), lease.ErrMisconfigured,
			fmt.Sprintf("%s leases.coordination.k8s.io in namespace %q", missing, in),
			"Role get, create and update")
	}
	grantRights(t, s, "with-all", verbs)
	if err := try(kubernetes.Limited, "with-all"); err != nil {
		t.Errorf("with all three verbs: %v", err)
	}
	// A process can find its rights without a write.
	for namespace, want := range map[string]error{"with-all": nil,
		"without-create": lease.ErrMisconfigured, "without-update": lease.ErrMisconfigured} {
		store := calls.Open(t, "k8s://"+namespace+"/rights?server="+
			s.Proxy(kubernetes.Token(kubernetes.Limited)))
		if err := store.CheckRights(t.Context()); !errors.Is(err, want) {
			t.Errorf("rights in %s: %v, want %v", namespace, err, want)
		}
		_, err := store.Describe(t.Context())
		wantError(t, "after a check of rights", err, lease.ErrNoStore)
	}
	wantError(t, "no namespace", try(kubernetes.Admin, "nowhere"), lease.ErrMisconfigured,
		`create the namespace "nowhere"`)
	wantError(t, "no user", try("nobody", "default"), lease.ErrMisconfigured, "credentials")
}

// grantRights creates a namespace in which the limited user has rights to Leases.
func grantRights(t *testing.T, s *kubernetes.Server, namespace string, verbs []string) {
	t.Helper()
	if err := s.Create(t.Context(), fmt.Sprintf(`
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
`, namespace, strings.Join(verbs, ", "), kubernetes.Limited)); err != nil {
		t.Fatal(err)
	}
	// The server takes up a role after a moment.
	body := fmt.Sprintf(`{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": {"user": %q, "resourceAttributes": {"verb": %q, "group": "coordination.k8s.io",
		"resource": "leases", "namespace": %q}}}`, kubernetes.Limited, verbs[0], namespace)
	for range 200 {
		answer, err := s.Do(t.Context(), http.MethodPost,
			"/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", []byte(body))
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
