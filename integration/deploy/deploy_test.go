// Package deploy tests what users start: the README's quick start, and the manifests of
// deploy/kubernetes, which must fit setup, the example service and a real API server.
package deploy

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/yaml"

	"github.com/traceflake/traceflake/integration/servers/child"
	"github.com/traceflake/traceflake/integration/servers/kubernetes"
)

func TestMain(m *testing.M) { kubernetes.Main(m) }

// end ends a program as the kubelet does.
func end(t *testing.T, p *child.Server) {
	t.Helper()
	if err := p.Terminate(); err != nil {
		t.Errorf("%v\n%s", err, p.Output())
	}
}

// apply creates objects in a new namespace with Kubernetes' strictest rules for pods.
func apply(t *testing.T, s *kubernetes.Server, namespace string, objects ...string) {
	t.Helper()
	object := fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s,
		labels: {pod-security.kubernetes.io/enforce: restricted}}}`, namespace)
	for _, o := range append([]string{object}, objects...) {
		if err := s.Apply(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func text(t *testing.T, objects resmap.ResMap) string {
	t.Helper()
	text, err := objects.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The API server accepts every object, without unknown fields, and a pod as the Deployment's
// controller would create it. The namespace is set by a kustomization as in docs/kubernetes.md, not
// by the manifests.
func TestServerTakes(t *testing.T) {
	s := kubernetes.Shared(t)
	for _, store := range stores {
		t.Run(store, func(t *testing.T) {
			namespace := "takes-" + path.Base(store)
			objects := render(t, store, namespace)
			for _, r := range objects.Resources() {
				if r.GetNamespace() != namespace {
					t.Errorf("%s %s is in namespace %q", r.GetKind(), r.GetName(), r.GetNamespace())
				}
			}
			manifests := text(t, objects)
			apply(t, s, namespace, manifests)
			var d struct {
				Spec struct {
					Template struct{ Metadata, Spec map[string]any }
				}
			}
			object(t, objects, "Deployment", &d)
			template := d.Spec.Template
			template.Metadata["name"], template.Metadata["namespace"] = "pod", namespace
			pod, err := yaml.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": template.Metadata,
				"spec": template.Spec,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct{ object, old, wrong string }{ // both checks can fail
				{manifests, "terminationGracePeriodSeconds", "terminationGraceSeconds"},
				{string(pod), "runAsNonRoot: true", "runAsNonRoot: false"},
			} {
				err := s.Apply(t.Context(), strings.Replace(c.object, c.old, c.wrong, 1))
				if name, _, _ := strings.Cut(c.wrong, ":"); err == nil ||
					!strings.Contains(err.Error(), name) {
					t.Errorf("%s: %v", c.wrong, err)
				}
			}
			if err := s.Apply(t.Context(), string(pod)); err != nil {
				t.Error(err)
			}
		})
	}
}

// The service account of the pods has exactly the rights to Leases that the store needs.
func TestRights(t *testing.T) {
	s := kubernetes.Shared(t)
	const namespace, leases = "rights", "coordination.k8s.io/leases"
	apply(t, s, "elsewhere")
	apply(t, s, namespace, text(t, render(t, "kubernetes", namespace)))
	for _, verb := range []string{"get", "list", "update"} {
		right, end := [3]string{verb, leases, namespace}, time.Now().Add(time.Minute)
		for !allowed(t, s, right) { // the server takes up a role after a moment
			if time.Now().After(end) {
				t.Fatalf("%q is not allowed", right)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	for _, right := range [][3]string{
		{"create", leases, namespace},
		{"watch", leases, namespace},
		{"patch", leases, namespace},
		{"delete", leases, namespace},
		{"deletecollection", leases, namespace},
		{"get", leases, "elsewhere"},
		{"list", leases, ""},
		{"get", "/secrets", namespace},
		{"get", "/configmaps", namespace},
	} {
		if allowed(t, s, right) {
			t.Errorf("%q is allowed", right)
		}
	}
}

// allowed reports whether the account of the service has a right: a verb, a resource with its
// group, a namespace.
func allowed(t *testing.T, s *kubernetes.Server, right [3]string) bool {
	t.Helper()
	group, resource, _ := strings.Cut(right[1], "/")
	var review struct{ Status struct{ Allowed bool } }
	post(t, s, "/apis/authorization.k8s.io/v1/subjectaccessreviews",
		fmt.Sprintf(`{"apiVersion": "authorization.k8s.io/v1",
		"kind": "SubjectAccessReview", "spec": {"user": "system:serviceaccount:rights:orders",
		"resourceAttributes":
		{"verb": %q, "group": %q, "resource": %q, "namespace": %q}}}`, right[0], group, resource,
			right[2]), &review)
	return review.Status.Allowed
}

// post sends an object to the API server and decodes the answer.
func post(t *testing.T, s *kubernetes.Server, path, object string, into any) {
	t.Helper()
	answer, err := s.Do(t.Context(), "POST", path, "application/json", []byte(object))
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
