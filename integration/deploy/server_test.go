// Package deploy has the tests of deploy/kubernetes: what the manifests say is
// what setup reads and what the example service does, and a real API server
// takes them.
package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/api/resmap"

	"github.com/traceflake/traceflake/integration/servers/kubernetes"
)

// namespaceOf makes a namespace whose pods must be as restricted as Kubernetes can demand.
func namespaceOf(ctx context.Context, t *testing.T, s *kubernetes.Server, name string) {
	t.Helper()
	err := s.Apply(ctx, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s,
		labels: {pod-security.kubernetes.io/enforce: restricted}}}`, name))
	if err != nil {
		t.Fatal(err)
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

// The API server takes every object, with no field that it does not know, and a pod as the
// Deployment's controller would make it. The namespace is not that of the manifests but one
// which a kustomization as in docs/kubernetes.md names.
func TestServerTakes(t *testing.T) {
	s := kubernetes.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, store := range append([]string{proxyManifests}, stores...) {
		t.Run(store, func(t *testing.T) {
			namespace := "takes-" + path.Base(store)
			namespaceOf(ctx, t, s, namespace)
			objects := render(t, store, namespace)
			for _, r := range objects.Resources() {
				if r.GetNamespace() != namespace {
					t.Errorf("%s %s is in namespace %q", r.GetKind(), r.GetName(), r.GetNamespace())
				}
			}
			manifests := text(t, objects)
			if err := s.Apply(ctx, manifests); err != nil {
				t.Fatal(err)
			}
			if err := createPod(ctx, t, s, objects, namespace, nil); err != nil {
				t.Error(err)
			}

			// Both checks can fail.
			wrong := strings.Replace(manifests, "terminationGracePeriodSeconds", "terminationGraceSeconds", 1)
			if err := s.Apply(ctx, wrong); err == nil || !strings.Contains(err.Error(), "terminationGraceSeconds") {
				t.Errorf("an unknown field: %v", err)
			}
			err := createPod(ctx, t, s, objects, namespace, func(spec map[string]any) {
				delete(spec, "securityContext")
			})
			if err == nil || !strings.Contains(err.Error(), "runAsNonRoot") {
				t.Errorf("a pod that may be root: %v", err)
			}
		})
	}
}

// createPod creates a pod of the Deployment, as its controllers would.
func createPod(ctx context.Context, t *testing.T, s *kubernetes.Server, objects resmap.ResMap, namespace string,
	change func(spec map[string]any),
) error {
	t.Helper()
	var d struct {
		Spec struct {
			Template struct{ Metadata, Spec map[string]any }
		}
	}
	object(t, objects, "Deployment", &d)
	pod := d.Spec.Template
	pod.Metadata["generateName"] = "orders-"
	if change != nil {
		change(pod.Spec)
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": pod.Metadata, "spec": pod.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Do(ctx, "POST", "/api/v1/namespaces/"+namespace+"/pods?fieldValidation=Strict", "application/json", body)
	return err
}

// The service account of the pods may do to Leases what the store does, and nothing else.
func TestRights(t *testing.T) {
	s := kubernetes.Shared(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const namespace = "rights"
	namespaceOf(ctx, t, s, namespace)
	namespaceOf(ctx, t, s, "elsewhere")
	if err := s.Apply(ctx, text(t, render(t, "kubernetes", namespace))); err != nil {
		t.Fatal(err)
	}
	const leases = "coordination.k8s.io/leases"
	for _, verb := range []string{"get", "list", "update"} {
		right := [3]string{verb, leases, namespace}
		for !allowed(ctx, t, s, right) { // the server takes up a role after a moment
			if err := ctx.Err(); err != nil {
				t.Fatalf("%q is not allowed: %v", right, err)
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
		if allowed(ctx, t, s, right) {
			t.Errorf("%q is allowed", right)
		}
	}
}

// allowed reports whether the account of the service has a right: a verb, a resource with its
// group, a namespace.
func allowed(ctx context.Context, t *testing.T, s *kubernetes.Server, right [3]string) bool {
	t.Helper()
	group, resource, _ := strings.Cut(right[1], "/")
	var review struct{ Status struct{ Allowed bool } }
	post(ctx, t, s, "/apis/authorization.k8s.io/v1/subjectaccessreviews", map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": map[string]any{
			"user": "system:serviceaccount:rights:orders",
			"resourceAttributes": map[string]string{
				"verb": right[0], "group": group, "resource": resource, "namespace": right[2],
			},
		},
	}, &review)
	return review.Status.Allowed
}
